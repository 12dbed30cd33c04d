"""Checks of login sessions: whether they count for pages of the site, and connect a user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.core.management.base import CommandError
from django.utils.crypto import get_random_string

from realtime.tools.doctor.finding import Finding, fail, ok, skip
from realtime.tools.doctor.service import RunningService, first
from realtime.tools.websocket import Closed, open_websocket

HOST = (
    "Let the reverse proxy pass the header Host on (nginx: proxy_set_header Host $host), or set"
    " USE_X_FORWARDED_HOST; list the host in ALLOWED_HOSTS. Or list the origin in allowed_origins."
)


def host(service: RunningService) -> Finding:
    """Check that the service takes pages of the site for its own, by the Host that arrives."""
    page = service.remote.origin
    response = service.plain_from(page)
    if response.header("Sec-WebSocket-Version") != "13":
        return skip(f"{service.path} answers {response.status} to a request without upgrade")
    if response.status == 403:
        return fail(f"login sessions of pages of {page} do not count: other host or origin", HOST)
    return ok(f"login sessions of pages of {page} count")


def check(service: RunningService, username: str) -> Finding:
    """Connect as a browser does in which this user is logged in, with a session of its own."""
    if not service.config.session_authentication:
        return skip("session_authentication is off", "Turn it on, or leave --user out.")
    if not username:
        return skip("no login session was tried", "Give --user NAME, a user of the site.")
    user = find_user(username)
    with _session(user) as key:
        cookie = f"{settings.SESSION_COOKIE_NAME}={key}"
        page = service.remote.origin
        with open_websocket(service.remote, service.path, page, cookie) as (response, socket):
            if socket is None:
                return fail(
                    f"the handshake of {username} is answered with {response.status}",
                    "See the other checks.",
                )
            socket.send(json.dumps({"id": 1, "params": {}}))
            message = socket.receive()
    if isinstance(message, Closed):
        return fail(
            f"the login session of {username} is not accepted: {message.code} {message.reason}",
            "See the log of the service (realtime.hooks): it names origin and host. Does the"
            " reverse proxy pass Host and Cookie on? Has the service the same sessions and"
            " SECRET_KEY?",
        )
    reply = first(message)
    if isinstance(error := reply.get("error"), dict):
        return fail(
            f"{username} is refused with error {error.get('code')} {error.get('message')}",
            "See the log of the service (realtime.hooks).",
        )
    return ok(f"a page of {page} connects with the login session of {username}")


def find_user(username: str) -> Any:
    """Return a user of the site.

    Raises:
        CommandError: there is no such user, or it is not active.
    """
    model = get_user_model()
    user = model._default_manager.filter(**{model.USERNAME_FIELD: username}).first()
    if user is None or not user.is_active:
        raise CommandError(f"There is no active user {username!r}.")
    return user


@contextmanager
def _session(user: Any) -> Iterator[str]:
    """Make a login session as Django's login does, and remove it at the end."""
    store: Any = import_module(settings.SESSION_ENGINE).SessionStore()
    store[SESSION_KEY] = user._meta.pk.value_to_string(user)
    store[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store["realtime_doctor"] = get_random_string(12)  # so that no other session is the same
    store.save()
    try:
        yield str(store.session_key)
    finally:
        store.delete()
