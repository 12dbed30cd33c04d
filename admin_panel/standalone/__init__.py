"""The standalone panel, behind one password that its operators share.

    path("", include("realtime.admin_panel.standalone.urls"))

    urls             the pages, sign-in and sign-out, /admin/auth and /admin/api; with `admin` on
      ├ panel            the home of the pages: frame, URLs, operator
      ├ views            sign-in, sign-out, and the redirect to the sign-in
      └ api              the two endpoints for tools of the reference server
    signin           the password, sessions and tokens, and how long they are valid
    limiter          limits of attempts to sign in
    counters         counts and marks in Django's cache
    shared_operator  the operator who knows the shared password

Users of Django with permissions for the panel do not need the password.
"""
