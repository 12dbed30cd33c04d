"""A small site that is tested with nothing but the public kit."""

from __future__ import annotations

SECRET_KEY = "not a secret"
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "channels",
    "realtime",
    "chat",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
ROOT_URLCONF = "chat.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
REALTIME = {
    "session_authentication": True,
    "namespaces": [
        {
            "name": "chat",
            "presence": True,
            "history_size": 100,
            "history_lifetime": 300,
            "history_recover": True,
        },
    ],
}
