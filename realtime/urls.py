"""URLs of the views that give tokens to client libraries. Include them in the site's URLconf:

    path("centrifuge/", include("realtime.urls"))

This makes /centrifuge/refresh and /centrifuge/subscribe, the defaults of centrifuge-js.
"""

from __future__ import annotations

from django.urls import path

from realtime import views

app_name = "realtime"

urlpatterns = [
    path("refresh", views.refresh, name="refresh"),
    path("subscribe", views.subscribe, name="subscribe"),
]
