"""Settings of the example: what a Django site needs at least, and the options of the service."""

from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
DEBUG = True  # for your own machine only
SECRET_KEY = "of this example: make your own"

INSTALLED_APPS = [
    "daphne",  # first: makes runserver speak WebSocket
    "django.contrib.staticfiles",
    "realtime",
    "realtime.answers",
    "assistant",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.content_security_policy",
    "django.middleware.csrf.CsrfViewMiddleware",
]
ROOT_URLCONF = "assistant.urls"
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

KEPT = {"history_size": 200, "history_lifetime": 3600, "history_recover": True}
MAY_WRITE = {"publish": True, "subscribe_to_publish": True}
REALTIME = {
    "v3_use_offset": True,
    "token_hmac_secret_key": SECRET_KEY,
    "namespaces": [{"name": "talk", **MAY_WRITE, **KEPT}],
}
