"""Settings of the example: what a Django site needs at least, and the options of the service."""

from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
DEBUG = True  # for your own machine only
SECRET_KEY = "of this example: make your own"

INSTALLED_APPS = [
    "daphne",  # first: makes runserver speak WebSocket
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "realtime",
    "chat",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "realtime.pages.middleware.PositionMiddleware",
]
ROOT_URLCONF = "chat.urls"
ASGI_APPLICATION = "asgi.application"
STATIC_URL = "static/"
LOGIN_URL = "enter"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
            ],
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
    "session_authentication": True,  # clients are the users of Django's login
    "v3_use_offset": True,
    "client_command_rates": {"*": "100/s burst 1000", "publish": "2/s burst 10"},
    "namespaces": [
        {
            "name": "chat",  # what is said, kept for those who lose the connection
            "presence": True,
            "join_leave": "user",  # a second tab is no second person
            "leave_delay": 3,  # and a reload is no leave
            "history_size": 100,
            "history_lifetime": 600,
            "history_recover": True,
        },
        {
            "name": "typing",  # who writes: of this moment only, so nothing is kept
            "publish": True,
            "subscribe_to_publish": True,
        },
    ],
}
