"""Every URL of the panel, in both homes, from its table of pages; and clients that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from admin_panel.models import Publication
from admin_panel.pages import PAGES

HOMES = {"admin": "admin:realtime_admin_", "standalone": "realtime_panel:"}
"""Home → what its URL names begin with."""

NAMES = [
    name for page in PAGES for name in (page.name, *(f"{page.name}_{part}" for part in page.parts))
]
"""Pages and their parts."""

QUERIES: dict[str, dict[str, str]] = {
    "channel": {"channel": "demo:a"},
    "channel_token": {"channel": "demo:a"},
    "channel_publishers": {"channel": "demo:a", "offsets": "1"},
    "channel_data": {"channel": "demo:a", "offset": "1"},
    "channel_remove": {"channel": "demo:a"},
    "user": {"user": "42"},
    "user_disconnect": {"user": "42"},
    "user_unsubscribe": {"user": "42", "all": "1"},
    "user_close": {"user": "42", "client": "c"},
    "user_block": {"user": "42"},
    "user_unblock": {"user": "42"},
    "frames": {"user": "42"},
    "frames_data": {"user": "42"},
    "frames_stop": {"user": "42"},
    "why": {"user": "42", "channel": "demo:a"},
}
"""What a page is asked about; the others need nothing."""

ASKED_BY_SCRIPTS = {"publish_reach", "console_run"}
"""Parts that answer a POST only."""

WITHOUT_SERVICE = {
    "overview": 503,
    "overview_data": 200,
    "overview_hour": 200,
    "overview_find": 200,
    "node": 503,
    "events": 503,
    "channels": 503,
    "channel": 503,
    "channel_token": 200,
    "channel_publishers": 200,
    "channel_data": 503,
    "channel_remove": 503,
    "user": 503,
    "user_disconnect": 503,
    "user_unsubscribe": 200,
    "user_close": 200,
    "user_block": 503,
    "user_unblock": 200,
    "frames": 200,
    "frames_data": 200,
    "frames_stop": 302,
    "why": 503,
    "publish": 200,
    "publish_reach": 405,
    "publish_channels": 200,
    "pending": 200,
    "pending_retry": 200,
    "pending_drop": 200,
    "log": 200,
    "namespaces": 200,
    "console": 200,
    "console_run": 405,
}
"""Page or part → the status of a GET in a process that serves no clients."""

CODENAMES = (
    "view",
    "publish",
    "publish_demo",
    "disconnect",
    "unsubscribe",
    "block",
    "trace",
    "remove_history",
    "manage_pending",
)
"""The permissions of a site with the namespace "demo"."""

OPTIONS: dict[str, Any] = {
    "admin": True,
    "admin_password": "correct horse battery",
    "admin_secret": "signs the sessions of the panel, and nothing else",
    "trusted_proxies": 1,
    "namespaces": [{"name": "demo", "history_size": 10, "history_lifetime": 60}, {"name": "chat"}],
}

SignIn = Callable[..., Client]


def configure(settings: Settings, **options: Any) -> None:
    """Have this process serve the panel with these options, on top of `OPTIONS`."""
    settings.REALTIME = OPTIONS | options


def url(home: str, name: str, **query: str) -> str:
    """The URL of a page or part, asked about something."""
    query = QUERIES.get(name, {}) | query
    path = reverse(HOMES[home] + name)
    return f"{path}?{urlencode(query)}" if query else path


def staff(*codenames: str) -> User:
    """A member of the staff with these permissions."""
    user = User.objects.create_user("staff", is_staff=True)
    content_type = ContentType.objects.get_for_model(Publication)
    for codename in codenames:
        found = Permission.objects.filter(
            content_type__app_label="realtime_admin", codename=codename
        ).first()
        # that of a namespace is made by `migrate`
        permission = found or Permission.objects.create(
            content_type=content_type, codename=codename, name=codename
        )
        user.user_permissions.add(permission)
    return user


def signed_in(*codenames: str, superuser: bool = False, **arguments: Any) -> Client:
    """A browser in which that member, or a superuser, is signed in."""
    client = Client(**arguments)
    user = User.objects.create_superuser("root") if superuser else staff(*codenames)
    client.force_login(user)
    return client
