"""The configuration of a page that connects: endpoint, token, and the views that refresh it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, get_script_prefix, reverse

from realtime.config import sources
from realtime.config.options import Config
from realtime.errors import Disconnect, Error, InternalError
from realtime.hooks.answers import optional
from realtime.hooks.registry import registry
from realtime.hooks.runner import call
from realtime.hooks.site_values import user_id
from realtime.node.hooks import Handshake, forwarded_headers
from realtime.tokens import DEFAULT_TTL, connection_token


def config(request: HttpRequest, **own: Any) -> dict[str, Any]:
    """Return the values of `{% realtime_config %}`, with the names of centrifuge-js.

    With `session_authentication` the login session identifies the client, and the token is "".

    Args:
        request: of the page.
        own: more values; they replace ours of the same name.

    Raises:
        ValueError: a token is needed, but no `token_hmac_secret_key` is set.
        InternalError: the site's info hook failed; the log has the reason.
    """
    values: dict[str, Any] = {"endpoint": endpoint(request)}
    if "token" not in own:
        by_session = sources.current().session_authentication
        # the client refreshes its token there
        ttl = sources.current().token_lifetime if find_view("refresh") else DEFAULT_TTL
        values["token"] = "" if by_session else token(request, ttl)
    for name, view in (("refreshEndpoint", "refresh"), ("subscribeEndpoint", "subscribe")):
        path = find_view(view)
        if path is not None:
            values[name] = path
    return values | own


def endpoint(request: HttpRequest) -> str:
    """Return the URL of the WebSocket, on the host of the request."""
    scheme = "wss" if request.is_secure() else "ws"
    path = get_script_prefix().rstrip("/") + sources.current().websocket_handler_prefix
    return f"{scheme}://{request.get_host()}{path}"


def token(request: HttpRequest, ttl: float = DEFAULT_TTL) -> str:
    """Return a connection token for the visitor, with the connection info of the site's hook.

    Args:
        request: of the page.
        ttl: seconds for which the token is valid.

    Returns:
        "" for a visitor who is not logged in, or whom the hook refuses.

    Raises:
        ValueError: no `token_hmac_secret_key` is set.
        InternalError: the site's info hook failed; the log has the reason.
    """
    user = visitor(request)
    if user is None:
        return ""
    info = None
    if (function := registry.single.get("info")) is not None:
        try:
            info = call(function, user, optional)
        except InternalError:
            raise
        except (Error, Disconnect):
            return ""  # the hook refuses this user, as when a session connects
    return connection_token(user_id(user), info=info, ttl=ttl)


def visitor(request: HttpRequest) -> Any | None:
    """Return the active user who is logged in, None for none."""
    user = getattr(request, "user", None)
    return user if user is not None and user.is_authenticated and user.is_active else None


def find_view(name: str) -> str | None:
    """Return the path of a view of `realtime.urls`, None if the site does not include them."""
    return find_url(f"realtime:{name}")


def find_url(name: str) -> str | None:
    """Return the path of a URL of the site by its name, None if there is none."""
    if not getattr(settings, "ROOT_URLCONF", None):
        return None
    try:
        return reverse(name)
    except NoReverseMatch:
        return None


def handshake(request: HttpRequest, config: Config) -> Handshake:
    """Return the parts of a request that a hook may read."""
    forwarded = forwarded_headers(config.handshake_headers)
    headers = {
        name.lower(): value for name, value in request.headers.items() if name.lower() in forwarded
    }
    return Handshake(headers, request.get_host(), transport="http")
