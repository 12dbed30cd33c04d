"""Django settings of the test site. Server processes get their options from a config file."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SECRET_KEY = "not a secret"
DEBUG = False
DEMO = True  # of the ready site, whose URLs some tests use
ALLOWED_HOSTS = ["*"]
USE_TZ = True
INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "realtime",
    "realtime.database",
    "realtime.pending",
    "realtime.online",
    "realtime.live",
    "api",
    "admin_panel",
]
INSTALLED_APPS += os.environ.get("TEST_APPS", "").split()
if "pytest" in sys.modules:  # the databases of servers lack its table, and each would say so
    INSTALLED_APPS += ["realtime.online.seen", "tests.live_models.shop"]
    # its hooks would be those of all tests
    INSTALLED_APPS += ["tests.answers.apps.AnswersWithoutHooks"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "tests.site.urls"
ASGI_APPLICATION = "tests.site.asgi.application"
STATIC_URL = "static/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("TEST_DATABASE", ":memory:"),
        "OPTIONS": {"timeout": 20},
    }
}
if _database := os.environ.get("TEST_DATABASE_SETTINGS"):
    DATABASES["default"] = json.loads(_database)
    if "mysql" in DATABASES["default"]["ENGINE"]:
        import pymysql

        pymysql.install_as_MySQLdb()
DEFAULT_EXCEPTION_REPORTER_FILTER = "realtime.config.error_reports.SecretsFilter"
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
if "TEST_LOGGING" in os.environ:
    LOGGING = json.loads(os.environ["TEST_LOGGING"])
