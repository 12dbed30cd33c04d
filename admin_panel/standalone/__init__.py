"""The panel's second home: by itself, behind one password that its operators share.

    path("", include("realtime.admin_panel.standalone.urls"))

    urls       the pages, sign-in and sign-out, /admin/auth and /admin/api; only with `admin` on
      ├ home       the panel as its pages see it: frame, URLs, who the operator is
      ├ views      sign-in, sign-out, and what every page does for whoever is not signed in
      └ api        the two endpoints that tools of the reference server use
    signin     password, sessions and tokens: what is right, and for how long
    limiter    how often a password may be tried
    memory     counts and marks that all processes share, where Django's cache is shared
    shared     the operator who gave the password

Users of Django who may use the panel need no password here.
"""
