"""URLs of the views of health:

path("health/", include("realtime.monitoring.urls"))
"""

from __future__ import annotations

from django.urls import path

from realtime.monitoring import views

app_name = "realtime_health"

urlpatterns = [
    path("live", views.live, name="live"),
    path("ready", views.ready, name="ready"),
]
