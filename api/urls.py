"""The URLs of the HTTP API: `path("api", include("realtime.api.urls"))`.

The path itself takes commands; below it each method of the newer dialect has one, and nothing else,
so that the site may have paths of its own there.
"""

from __future__ import annotations

from django.urls import path, re_path

from realtime.server_api.methods_v2 import NAMES

from .views import CommandView, MethodView

app_name = "realtime_api"
urlpatterns = [
    path("", CommandView.as_view(), name="commands"),
    # a class of one character, as Django warns of routes that begin with a slash
    re_path(rf"^[/](?P<name>{'|'.join(NAMES)})$", MethodView.as_view(), name="method"),
]
