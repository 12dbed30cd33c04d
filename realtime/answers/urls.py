"""URLs of answers. Include them in the site's URLconf:

path("answers/", include("realtime.answers.urls"))
"""

from __future__ import annotations

from django.urls import path

from realtime.answers import http

app_name = "realtime_answers"

urlpatterns = [
    path("<uuid:pk>/events", http.events, name="events"),
    path("<uuid:pk>/stop", http.stop, name="stop"),
]
