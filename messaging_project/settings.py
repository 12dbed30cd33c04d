"""Settings of the ready site. An installation changes them by environment variables.

SERVICE_<OPTION> sets an option of the service. SERVICE_NAMESPACES is a JSON array of
namespaces. SERVICE_CONFIG_FILE names a JSON file of options. DJANGO_SECRET_KEY,
DJANGO_DEBUG, DJANGO_DEMO, DJANGO_ALLOWED_HOSTS, DJANGO_CSRF_TRUSTED_ORIGINS and DJANGO_DATABASE (a
file of SQLite, or a URL postgresql://) are Django's own settings.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from messaging_project.databases import database
from messaging_project.secrets import secret

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("DJANGO_DATA_DIR", BASE_DIR / "var"))

DEBUG = os.environ.get("DJANGO_DEBUG", "").lower() in ("1", "true")
# The demo page gives a token to every visitor. `make run` turns it on.
DEMO = DEBUG or os.environ.get("DJANGO_DEMO", "").lower() in ("1", "true")
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or secret(DATA_DIR, "django_secret_key")
ALLOWED_HOSTS = os.environ.get("DJANGO_ALLOWED_HOSTS", "localhost 127.0.0.1 [::1]").split()
CSRF_TRUSTED_ORIGINS = os.environ.get("DJANGO_CSRF_TRUSTED_ORIGINS", "").split()

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
    "api",
    "admin_panel",
    "messaging_project",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "messaging_project.urls"
ASGI_APPLICATION = "messaging_project.asgi.application"

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

DATABASES = {"default": database(os.environ.get("DJANGO_DATABASE", ""), DATA_DIR / "db.sqlite3")}
IS_POSTGRESQL = DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"

# The service. The secrets are made at the first start. The environment and the file that
# SERVICE_CONFIG_FILE names override all of this.
REALTIME_DEFAULTS = {
    "token_hmac_secret_key": secret(DATA_DIR, "token_hmac_secret_key"),
    "api_key": secret(DATA_DIR, "api_key"),
    # for the panel at the root: SERVICE_ADMIN=true and SERVICE_ADMIN_PASSWORD turn it on
    "admin_secret": secret(DATA_DIR, "admin_secret"),
    "v3_use_offset": True,
    "namespaces": [
        {
            "name": "demo",
            "anonymous": DEMO,  # as visitors of the demo page are
            "publish": True,
            "subscribe_to_publish": True,
            "presence": True,
            "join_leave": True,
            "history_size": 100,
            "history_lifetime": 300,
            "history_recover": True,
        }
    ],
}

# The channel layer, for consumers that are added to the site. The service itself needs only
# SERVICE_REDIS_URL, or SERVICE_ENGINE=postgresql.
REDIS_URL = os.environ.get("SERVICE_REDIS_URL", "")
CHANNEL_LAYERS: dict[str, dict[str, object]] = {
    "default": {
        "BACKEND": "realtime.layer.RedisChannelLayer",
        "CONFIG": {"hosts": REDIS_URL.split(",")},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

# The panel's sign-in keeps attempts and ended sessions here, for all processes.
CACHES: dict[str, dict[str, object]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL.split(",")[0],  # several are shards of the service
        "KEY_PREFIX": "messaging_project",
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "site_cache"}
    if IS_POSTGRESQL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# Error pages and error e-mails hide the secrets of the service.
DEFAULT_EXCEPTION_REPORTER_FILTER = "realtime.config.error_reports.SecretsFilter"


def is_news(record: logging.LogRecord) -> bool:
    """Return whether a line of daphne is more than its progress until it listens."""
    return record.levelno > logging.INFO or record.getMessage().startswith("Listening on")


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"news": {"()": "django.utils.log.CallbackFilter", "callback": is_news}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {name: {"filters": ["news"]} for name in ("daphne.cli", "daphne.server")},
    "root": {"handlers": ["console"], "level": "INFO"},
}
