"""Check that a page of the site connects with the login session of a user."""

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

from realtime.console.doctor.finding import Finding, fail, ok, skip
from realtime.console.doctor.service import Service, first
from realtime.console.websocket import Closed, open_websocket


def check(service: Service, username: str) -> Finding:
    """Connect as a browser does in which this user is logged in, with a session of its own."""
    if not service.config.session_authentication:
        return skip("session_authentication is off", "Turn it on, or leave --user out.")
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
