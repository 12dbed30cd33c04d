"""The views that client libraries ask for tokens, as whoever is logged in.

Requests, answers and statuses are those of centrifuge-js (protocol-v2, 14.2). It sends no
CSRF token, so these views do without Django's check and are safe by other means: no page of
another origin can send JSON with the header X-Requested-With unless it is allowed to, the
header Origin is looked at, and answers cannot be read across origins or from a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated

import msgspec
from django.contrib.auth.decorators import login_not_required
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from msgspec import Meta, Struct

from realtime import channel_rules, page_config
from realtime.config import sources
from realtime.config.options import Config
from realtime.errors import Disconnect, Error, InternalError, PermissionDenied
from realtime.hooks.answers import channel_info, user_id
from realtime.hooks.login import is_trusted
from realtime.hooks.registry import registry
from realtime.hooks.requests import SubscribeRequest
from realtime.hooks.runner import call
from realtime.node.hooks import FORWARDED_HEADERS, Handshake
from realtime.tokens import connection_token, subscription_token

MAX_BODY_BYTES = 256 * 1024
MAX_CHANNELS = 1000
"""Channels in one request where `client_channel_limit` sets no limit."""

View = Callable[[HttpRequest, bytes], HttpResponse]


class _Wanted(Struct):
    """What a client asks for: subscription tokens for these channels."""

    client: Annotated[str, Meta(min_length=1, max_length=255)]
    channels: list[str]


def _for_clients(view: View) -> Callable[[HttpRequest], HttpResponse]:
    """A view that is called with the body of requests that may be answered."""

    @never_cache
    @csrf_exempt
    @login_not_required  # nobody gets an answer that clients understand, not a redirect
    @non_atomic_requests  # a function that fails must not break the others' transaction
    @require_POST
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if request.content_type != "application/json":
            return _refuse(415, "The content type is application/json.")
        if request.headers.get("X-Requested-With") != "XMLHttpRequest":
            return _refuse(403, "The header X-Requested-With: XMLHttpRequest is missing.")
        allowed = sources.current().allowed_origins
        if not is_trusted(request.headers.get("Origin"), request.get_host(), allowed):
            return _refuse(403, "Pages of this origin may not ask.")
        try:
            body = request.read(MAX_BODY_BYTES + 1)
        except UnreadablePostError:
            return _refuse(400, "The body broke off.")
        if len(body) > MAX_BODY_BYTES:
            return _refuse(413, "The body is too large.")
        return view(request, body)

    return guarded


def _refuse(status: int, reason: str) -> HttpResponse:
    return HttpResponse(f"{reason}\n", status=status, content_type="text/plain; charset=utf-8")


@_for_clients
def refresh(request: HttpRequest, body: bytes) -> HttpResponse:
    """A connection token for the visitor; an empty one tells the client to give up."""
    try:
        token = page_config.token(request)
    except InternalError:
        return _refuse(500, "The connection info could not be found.")
    if not token and sources.current().client_anonymous:
        # Whoever logged out may ask here for a connection that is still theirs. A token that
        # never expires does not prolong it (protocol-v2, 3.5): it ends, and comes back as
        # nobody's.
        token = connection_token("", ttl=None)
    return JsonResponse({"token": token})


@_for_clients
def subscribe(request: HttpRequest, body: bytes) -> HttpResponse:
    """Subscription tokens for those channels that the visitor may subscribe to.

    A channel that is left out is denied. What decides is the channel's options and then the
    function that is registered for it, as in `@hooks.subscribe("$room:{room}")`.
    """
    config = sources.current()
    try:
        wanted = msgspec.json.decode(body, type=_Wanted)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _refuse(400, "A client and a list of channels are wanted.")
    if len(wanted.channels) > (config.client_channel_limit or MAX_CHANNELS):
        return _refuse(400, "These are too many channels.")
    asking = _Asking(request, wanted.client, config)
    granted: list[Mapping[str, str]] = []
    failed = False
    for channel in dict.fromkeys(wanted.channels):
        try:
            granted.append({"channel": channel, "token": asking.token(channel)})
        except InternalError:
            failed = True
        except (Error, Disconnect):
            continue
    if failed and not granted:
        return _refuse(500, "Nobody could decide.")
    return JsonResponse({"channels": granted})


class _Asking:
    """One client that wants to subscribe, and whoever is logged in where it runs."""

    def __init__(self, request: HttpRequest, client: str, config: Config) -> None:
        self._client = client
        self._user = user_id(page_config.visitor(request) or "")
        self._config = config
        self._handshake = _handshake(request, config)

    def token(self, channel: str) -> str:
        """A subscription token, with the channel info that the site's function answers.

        Raises:
            InternalError: the function failed; the log has the reason.
            Error, Disconnect: the visitor may not subscribe.
        """
        config = self._config
        if not channel_rules.is_private(channel, config):
            raise PermissionDenied
        channel_rules.check_characters(channel)
        channel_rules.check_length(channel, config)
        options = channel_rules.options_of(channel, config)
        channel_rules.check_subscribe(channel, options, self._user, config)
        found = registry.find_private(channel, config.channel_private_prefix)
        if found is None:
            raise PermissionDenied
        function, params = found
        request = SubscribeRequest(
            client=self._client,
            user=self._user,
            handshake=self._handshake,
            channel=channel,
            params=params,
        )
        info = call(function, request, channel_info)
        return subscription_token(self._client, channel, info=info)


def _handshake(request: HttpRequest, config: Config) -> Handshake:
    """What a function of the site may want to know of the request."""
    wanted = {*FORWARDED_HEADERS, *map(str.lower, config.proxy_extra_http_headers or ())}
    headers = {
        name.lower(): value for name, value in request.headers.items() if name.lower() in wanted
    }
    return Handshake(headers, request.get_host(), transport="http")
