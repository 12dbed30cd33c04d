"""Where client libraries get tokens: include it in the site's URLconf.

    path("centrifuge/", include("realtime.urls"))

makes /centrifuge/refresh and /centrifuge/subscribe, which centrifuge-js asks by default.
"""

from __future__ import annotations

from django.urls import path

from realtime import views

app_name = "realtime"

urlpatterns = [
    path("refresh", views.refresh, name="refresh"),
    path("subscribe", views.subscribe, name="subscribe"),
]
