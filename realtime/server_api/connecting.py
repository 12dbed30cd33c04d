"""What the site does to connections, as plain functions; what holds for all is in `queries`.

Each takes a user, and can be narrowed to one connection: by the ID of its client, which hooks,
signals and `connections` give, or by its session.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypedDict, Unpack

from realtime.channel_rules import name
from realtime.cluster.control import RefreshSome, SubscribeSome
from realtime.cluster.member import Member
from realtime.config.channel_options import Overrides
from realtime.hooks.site_values import to_payload, user_id
from realtime.payload import site_text
from realtime.server_api import operations
from realtime.server_api.arguments import Position, check_names, stream_position
from realtime.serving import serving

Work = Callable[[Member], Awaitable[None]]
SentWork = Callable[[Member], Awaitable[list[str]]]
"""Work whose result names the nodes that are silent."""


class ClientOptions(TypedDict, total=False):
    """Options that name some of a user's connections."""

    client: str
    """Only the connection of the client with this ID."""
    session: str
    """Only the connection with this session."""


class DisconnectOptions(ClientOptions, total=False):
    """Options of `disconnect`."""

    whitelist: Iterable[str]
    """IDs of clients whose connections stay, 1000 at most."""


class RefreshOptions(ClientOptions, total=False):
    """Options of `refresh`."""

    info: object
    """The new connection info; None: it stays as it is."""


class SubscribeOptions(ClientOptions, total=False):
    """Options of `subscribe`."""

    info: object
    """The channel info, which others in the channel see; None for none."""
    data: object
    """For the client; None for none."""
    expires_at: datetime | float | None
    """When the subscription expires, an aware `datetime` or Unix seconds; None for never."""
    recover_since: Position | int | None
    """The position, or the offset in whatever epoch, from which on the client gets what it missed,
    in channels with forced recovery."""
    override: Mapping[str, bool] | None
    """Channel options that are others for these subscriptions: `join_leave`, `presence`,
    `force_push_join_leave`, `force_recovery`, `force_positioning`."""


def subscribe(user: Any, channel: str, **options: Unpack[SubscribeOptions]) -> None:
    """Subscribe a user's connections to a channel; it ends with the connection.

    Where a client is subscribed already, it gets `data`, and `info` and `expires_at` become those
    of this call.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.
        channel: the name of the channel.
        options: `client`, `session`, `info`, `data`, `expires_at`, `recover_since` and `override`,
            which `SubscribeOptions` explains.

    Raises:
        InternalError: code 100, `expires_at` has passed.
        TypeError: `user` is neither a user nor an ID, `info` or `data` has no JSON form, or another
            argument has the wrong type.
        ValueError: `expires_at` is a naive datetime, an offset is less than 0, or an option is none
            of those.
    """
    serving.call(_subscribing(user, channel, options), async_name="asubscribe")


async def asubscribe(user: Any, channel: str, **options: Unpack[SubscribeOptions]) -> None:
    """Subscribe a user's connections to a channel. Async version of `subscribe`."""
    await serving.acall(_subscribing(user, channel, options))


def _subscribing(user: Any, channel: str, options: SubscribeOptions) -> Work:
    check_names(options, SubscribeOptions)
    override = options.get("override") or {}
    for option, on in override.items():
        if option not in Overrides._fields:
            raise ValueError(f"override has no option {option!r}")
        if not isinstance(on, bool):
            raise TypeError(f"override {option} must be True or False, not {type(on).__name__}")
    message = SubscribeSome(
        channel=name(channel),
        info=_json(options.get("info")),
        data=_json(options.get("data")),
        expires_at=_unix_seconds(options.get("expires_at")),
        since=stream_position(options.get("recover_since")),
        overrides=dict(override) or None,
        **_selected(user, options),
    )
    return partial(operations.subscribe, message=message)


def unsubscribe(user: Any, channel: str = "", **options: Unpack[ClientOptions]) -> list[str]:
    """Unsubscribe a user's connections from a channel.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.
        channel: the name of the channel; "" means all channels of each connection.
        options: `client` and `session`, which `ClientOptions` explains.

    Returns:
        The names of the nodes that are silent, see `nodes`: they do it when they are back.

    Raises:
        TypeError: `user` is neither a user nor an ID, or another argument is not a string.
    """
    return serving.call(_unsubscribing(user, channel, options), async_name="aunsubscribe")


async def aunsubscribe(user: Any, channel: str = "", **options: Unpack[ClientOptions]) -> list[str]:
    """Unsubscribe a user's connections from a channel. Async version of `unsubscribe`."""
    return await serving.acall(_unsubscribing(user, channel, options))


def _unsubscribing(user: Any, channel: str, options: ClientOptions) -> SentWork:
    check_names(options, ClientOptions)
    return partial(operations.unsubscribe, channel=name(channel), **_selected(user, options))


def disconnect(user: Any, **options: Unpack[DisconnectOptions]) -> list[str]:
    """Disconnect a user's connections; their clients do not reconnect.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.
        options: `client`, `session` and `whitelist`, which `DisconnectOptions` explains.

    Returns:
        The names of the nodes that are silent, see `nodes`: they do it when they are back.

    Raises:
        TypeError: `user` is neither a user nor an ID, or another argument is not a string.
    """
    return serving.call(_disconnecting(user, options), async_name="adisconnect")


async def adisconnect(user: Any, **options: Unpack[DisconnectOptions]) -> list[str]:
    """Disconnect a user's connections. Async version of `disconnect`."""
    return await serving.acall(_disconnecting(user, options))


def _disconnecting(user: Any, options: DisconnectOptions) -> SentWork:
    check_names(options, DisconnectOptions)
    whitelist = options.get("whitelist", ())
    if isinstance(whitelist, str):
        raise TypeError("whitelist must be a list of client IDs, not one")
    kept = [_text(each) for each in whitelist]
    return partial(operations.disconnect, whitelist=kept, **_selected(user, options))


def refresh(
    user: Any, expires_at: datetime | float | None = None, **options: Unpack[RefreshOptions]
) -> None:
    """Set when a user's connections expire, and what others see of them.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.
        expires_at: an aware `datetime`, or Unix seconds. A past time closes the connections with
            3005 "expired", None ends their expiry.
        options: `info`, `client` and `session`, which `RefreshOptions` explains.

    Raises:
        TypeError: `user` is neither a user nor an ID, `info` has no JSON form, or another argument
            has the wrong type.
        ValueError: `expires_at` is a naive datetime.
    """
    serving.call(_refreshing(user, expires_at, options), async_name="arefresh")


async def arefresh(
    user: Any, expires_at: datetime | float | None = None, **options: Unpack[RefreshOptions]
) -> None:
    """Set when a user's connections expire. Async version of `refresh`."""
    await serving.acall(_refreshing(user, expires_at, options))


def _refreshing(user: Any, expires_at: datetime | float | None, options: RefreshOptions) -> Work:
    check_names(options, RefreshOptions)
    moment, info = _unix_seconds(expires_at), _json(options.get("info"))
    message = RefreshSome(expires_at=moment, info=info, **_selected(user, options))
    return partial(operations.refresh, message=message)


def _selected(user: Any, options: ClientOptions) -> dict[str, Any]:
    return {
        "user": user_id(user),
        "client": _text(options.get("client", "")),
        "session": _text(options.get("session", "")),
    }


def _json(value: object) -> str | None:
    return None if value is None else to_payload(value).raw.decode()


def _unix_seconds(moment: datetime | float | None) -> float | None:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError("expires_at must be an aware datetime")
        return moment.timestamp()
    if moment is None:
        return None
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise TypeError(f"expires_at must be a datetime or seconds, not {type(moment).__name__}")
    if not abs(moment) < float("inf"):
        raise ValueError(f"expires_at must be a moment, not {moment}")
    return float(moment)


def _text(text: object) -> str:
    return site_text("a client ID or session", text)
