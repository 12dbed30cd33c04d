"""Settings of the example. Lines with "service" add the service, those with "live" make it live."""

from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
DEBUG = True  # for your own machine only
SECRET_KEY = "of this example: make your own"

INSTALLED_APPS = [
    "daphne",  # service
    "django.contrib.staticfiles",
    "realtime",  # service
    "realtime.live",  # live
    "todo",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.content_security_policy",
    "django.middleware.csrf.CsrfViewMiddleware",
    "realtime.pages.middleware.PositionMiddleware",  # live
]
ROOT_URLCONF = "todo.urls"
ASGI_APPLICATION = "asgi.application"  # service
STATIC_URL = "static/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
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

KEPT = {"history_size": 500, "history_lifetime": 600, "history_recover": True}  # live
REALTIME = {  # live
    "client_anonymous": True,  # live
    "namespaces": [{"name": "todo", "anonymous": True, **KEPT}],  # live
}  # live
