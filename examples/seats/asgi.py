"""The ASGI application: Django, and the service beside it."""

import os

from django.core.asgi import get_asgi_application

import realtime.asgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
application = realtime.asgi.application(get_asgi_application())
