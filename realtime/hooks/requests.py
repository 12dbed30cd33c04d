"""Arguments of hooks.

Only `user`, `client`, `meta` and the Django user are verified; everything else is client input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.http import parse_cookie
from django.utils.functional import SimpleLazyObject

from realtime.node.hooks import Handshake
from realtime.payload import Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The client that a hook decides about, and how it is connected."""

    client: str
    """Client ID."""
    user: str
    """User ID; "" for anonymous clients, and before a client is identified."""
    handshake: Handshake
    encoded_meta: Payload | None = field(default=None, repr=False)
    _django_user: Any = field(default=None, init=False, repr=False, compare=False)

    @property
    def meta(self) -> Any:
        """The claim `meta` of the connection token, or what the connect hook gave; else None.

        It is verified, and no client sees it.
        """
        return None if self.encoded_meta is None else msgspec.json.decode(self.encoded_meta.json)

    @property
    def headers(self) -> Mapping[str, str]:
        """Forwarded headers of the handshake, by lower-case name."""
        return self.handshake.headers

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies of the handshake, as a view finds them in `request.COOKIES`."""
        return parse_cookie(self.headers.get("cookie", ""))

    @property
    def django_user(self) -> Any:
        """The Django user with this ID; it is read from the database when it is first used.

        Like `request.user` of a view: AnonymousUser if there is none. In a coroutine, await
        `aget_user()` instead.
        """
        if self._django_user is None:
            object.__setattr__(self, "_django_user", SimpleLazyObject(self.get_user))
        return self._django_user

    async def aget_user(self) -> Any:
        """Return the Django user with this ID. Async version of `get_user`."""
        return await sync_to_async(self.get_user)()

    def get_user(self) -> Any:
        """Return the Django user with this ID, from the database; AnonymousUser if none exists.

        Inactive users count as missing, as for Django's own login.
        """
        from django.contrib.auth import get_user_model
        from django.contrib.auth.models import AnonymousUser

        if not self.user:
            return AnonymousUser()
        try:
            user = get_user_model()._default_manager.get(pk=self.user)
        except (ObjectDoesNotExist, ValidationError, ValueError, TypeError, OverflowError):
            return AnonymousUser()
        return user if getattr(user, "is_active", True) else AnonymousUser()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRequest(Request):
    """A client connects without a token. `data` is None if it sent none."""

    data: Any = field(default=None, repr=False)
    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest(Request):
    """A connection is about to expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeRequest(Request):
    """A client wants to subscribe. `token` is not verified."""

    channel: str
    params: Mapping[str, str] = field(default_factory=dict)
    """Name in the pattern → its text in the channel."""
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest(Request):
    """A client wants to publish."""

    channel: str
    data: Any
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPutRequest(Request):
    """A client wants to change a key of a map."""

    channel: str
    key: str
    data: Any = None
    """The new value."""
    removed: bool = False
    """Whether the client removes the key."""
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RPCRequest(Request):
    """A client calls a method."""

    method: str
    data: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRequest(Request):
    """A client sent a message, to which there is no reply."""

    data: Any = None
