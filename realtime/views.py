"""Views that give tokens to client libraries, for the user who is logged in.

Requests, responses and statuses are those of centrifuge-js (docs/protocol.md, 14.2). It sends
no CSRF token, so the views are exempt from Django's check and safe by other means: a page of
another origin cannot send JSON with the header X-Requested-With unless it is allowed to, the
header Origin is checked, and responses can be read neither across origins nor from a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated

import msgspec
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from msgspec import Meta, Struct

from realtime import channel_rules
from realtime.config import sources
from realtime.config.options import Config
from realtime.errors import Disconnect, Error, InternalError, PermissionDenied
from realtime.hooks.answers import permission
from realtime.hooks.login import is_trusted
from realtime.hooks.registry import registry
from realtime.hooks.requests import SubscribeRequest
from realtime.hooks.runner import call
from realtime.hooks.site_values import user_id
from realtime.pages import page_config
from realtime.tokens import connection_token, subscription_token, user_subscription_token

MAX_BODY_BYTES = 256 * 1024
MAX_CHANNELS = 1000
"""Channels in one request where `client_channel_limit` sets no limit."""

View = Callable[[HttpRequest, bytes], HttpResponse]


class _ChannelsBody(Struct):
    """A request for tokens of one client, for some channels."""

    client: Annotated[str, Meta(min_length=1, max_length=255)]
    channels: list[str]


class _ChannelBody(Struct):
    """A request for a token of the visitor, for one channel."""

    channel: str


def _read_body(body: bytes) -> _ChannelsBody | _ChannelBody:
    """Return the request that a body is; one that names a client is for its channels.

    Raises:
        MsgspecError, UnicodeDecodeError, RecursionError: it is neither of the two.
    """
    try:
        return msgspec.json.decode(body, type=_ChannelsBody)
    except msgspec.ValidationError:
        return msgspec.json.decode(body, type=_ChannelBody)


def _for_clients(view: View) -> Callable[[HttpRequest], HttpResponse]:
    """Return a view that checks a request and then calls `view` with its body."""

    @never_cache
    @csrf_exempt
    @login_not_required  # clients do not understand a redirect to the login page
    @non_atomic_requests  # a hook that fails must not break the transaction of the others
    @require_POST
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if request.content_type != "application/json":
            return _refuse(415, "The content type must be application/json.")
        if request.headers.get("X-Requested-With") != "XMLHttpRequest":
            return _refuse(403, "The header X-Requested-With: XMLHttpRequest is missing.")
        allowed = sources.current().allowed_origins
        # without the setting, a proxy may hide that the browser came by TLS
        secure = request.is_secure() or (False if settings.SECURE_PROXY_SSL_HEADER else None)
        if not is_trusted(request.headers.get("Origin"), request.get_host(), allowed, secure):
            return _refuse(403, "Origin not allowed.")
        try:
            body = request.read(MAX_BODY_BYTES + 1)
        except UnreadablePostError:
            return _refuse(400, "Incomplete request body.")
        if len(body) > MAX_BODY_BYTES:
            return _refuse(413, "The request body is too large.")
        return view(request, body)

    return guarded


def _refuse(status: int, reason: str) -> HttpResponse:
    return HttpResponse(f"{reason}\n", status=status, content_type="text/plain; charset=utf-8")


@_for_clients
def refresh(request: HttpRequest, body: bytes) -> HttpResponse:
    """Give the visitor a connection token; an empty one makes the client give up."""
    try:
        token = page_config.token(request, sources.current().token_lifetime)
    except InternalError:
        return _refuse(500, "The hook for connection info failed.")
    config = sources.current()
    if not token and config.client_anonymous and not config.disallow_anonymous_connection_tokens:
        # A user who logged out may refresh a connection of before. A token that never expires
        # does not extend it (docs/protocol.md, 3.5): it ends, and the client reconnects as
        # anonymous.
        token = connection_token("", ttl=None)
    return JsonResponse({"token": token})


@_for_clients
def subscribe(request: HttpRequest, body: bytes) -> HttpResponse:
    """Give the visitor subscription tokens for the channels that it may subscribe to.

    Two requests are known: one client with several channels, and, from newer client libraries, one
    channel. The response leaves out refused channels; for a single one its status is 403. The
    options of a channel decide, and then the hook that is registered for it, as in
    `@hooks.subscribe("$room:{room}")`.
    """
    config = sources.current()
    try:
        requested = _read_body(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _refuse(400, "The body must name a client and a list of channels, or one channel.")
    if isinstance(requested, _ChannelBody):
        return _subscribe_user(_Subscriber(request, "", config), requested.channel)
    if len(requested.channels) > (config.client_channel_limit or MAX_CHANNELS):
        return _refuse(400, "Too many channels.")
    subscriber = _Subscriber(request, requested.client, config)
    granted: list[Mapping[str, str]] = []
    failed = False
    for channel in dict.fromkeys(requested.channels):
        try:
            granted.append({"channel": channel, "token": subscriber.token(channel)})
        except InternalError:
            failed = True
        except (Error, Disconnect):
            continue
    if failed and not granted:
        return _refuse(500, "The permission check failed.")
    return JsonResponse({"channels": granted})


def _subscribe_user(subscriber: _Subscriber, channel: str) -> HttpResponse:
    """Give the visitor the token for one channel."""
    try:
        return JsonResponse({"token": subscriber.token(channel)})
    except InternalError:
        return _refuse(500, "The permission check failed.")
    except (Error, Disconnect):
        return _refuse(403, "The visitor may not subscribe to the channel.")


class _Subscriber:
    """A visitor who needs subscription tokens, for one client or for all its clients.

    Without a client ID, tokens are for the visitor's user ID.
    """

    def __init__(self, request: HttpRequest, client: str, config: Config) -> None:
        self._client = client
        self._user = user_id(page_config.visitor(request) or "")
        self._config = config
        self._handshake = page_config.handshake(request, config)

    def token(self, channel: str) -> str:
        """Return a subscription token, with the channel info of the site's hook.

        Raises:
            InternalError: the hook failed; the log has the reason.
            Error, Disconnect: the visitor may not subscribe.
        """
        config = self._config
        if not channel_rules.is_private(channel, config):
            raise PermissionDenied
        options = channel_rules.check_channel(channel, config)
        channel_rules.check_pattern(channel, options, config)
        channel_rules.check_subscribe(channel, options, self._user, config)
        entry = registry.find_private(channel, config.channel_private_prefix)
        if entry is None:
            raise PermissionDenied
        function, params = entry
        request = SubscribeRequest(
            client=self._client,
            user=self._user,
            handshake=self._handshake,
            channel=channel,
            params=params,
        )
        info, ttl = msgspec.structs.astuple(call(function, request, permission))
        # the client comes back for another token, and the hook is asked again
        ttl = config.token_lifetime if ttl is None else min(ttl, config.token_lifetime)
        if self._client:
            return subscription_token(self._client, channel, info=info, ttl=ttl)
        return user_subscription_token(self._user, channel, info=info, ttl=ttl)
