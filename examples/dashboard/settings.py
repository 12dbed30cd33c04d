"""Settings of the example: what a Django site needs at least, and the options of the service."""

from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
DEBUG = True  # for your own machine only
SECRET_KEY = "of this example: make your own"

INSTALLED_APPS = [
    "daphne",  # first: makes runserver speak WebSocket
    "django.contrib.staticfiles",
    "realtime",
    "realtime.pending",
    "dashboard",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.content_security_policy",
    "django.middleware.csrf.CsrfViewMiddleware",
    "realtime.pages.middleware.PositionMiddleware",
]
ROOT_URLCONF = "dashboard.urls"
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
    "client_anonymous": True,  # a screen on the wall: no login
    "v3_use_offset": True,
    "namespaces": [
        {
            "name": "shop",
            "anonymous": True,
            "durable": True,  # reaches the pages from any process, also without Redis
            "history_size": 300,  # a screen may be away for five minutes
            "history_lifetime": 600,
            "history_recover": True,
        },
    ],
}
