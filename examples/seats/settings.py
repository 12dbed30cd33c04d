"""Settings of the example: what a Django site needs at least, and the options of the service."""

from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
DEBUG = True  # for your own machine only
SECRET_KEY = "of this example: make your own"

INSTALLED_APPS = [
    "daphne",  # first: makes runserver speak WebSocket
    "django.contrib.staticfiles",
    "realtime",
    "seats",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.content_security_policy",
    "django.middleware.csrf.CsrfViewMiddleware",
]
ROOT_URLCONF = "seats.urls"
ASGI_APPLICATION = "asgi.application"
STATIC_URL = "static/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": ["django.template.context_processors.request"],
        },
    },
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "db.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},  # writers wait in turn
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REALTIME = {
    "v3_use_offset": True,
    "client_command_rates": {"*": "100/s burst 200", "publish": "25/s burst 50"},
    "namespaces": [
        {
            "name": "seats",
            "anonymous": True,  # the connect hook lets everybody in
            "map": "recoverable",
            "map_key_ttl": 30,  # a seat is free again when its page is gone
        },
        {
            "name": "cursors",
            "anonymous": True,
            "map": "ephemeral",
            "map_publish": "subscriber",
            "allow_publish_for_anonymous": True,
            "map_key": "client",
            "map_remove_on_unsubscribe": True,
        },
    ],
}
