"""This service in a minimal Django site. BENCH_API=view leaves /api to the REST framework view."""

from __future__ import annotations

import os

from django.conf import settings

settings.configure(
    SECRET_KEY="not a secret",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "channels",
        "rest_framework",
        "realtime",
        "api",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
)

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

# after Django is set up
from django.urls import include, path

import realtime.asgi

urlpatterns = [path("api", include("api.urls"))]

application = realtime.asgi.application(
    django_application,
    api=os.environ.get("BENCH_API", "shell") == "shell",
    settle_heap=True,
)
