"""Operations on the connections of users: subscribe, unsubscribe, disconnect, refresh, block."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from realtime.channel_rules import check_channel
from realtime.cluster.control import SubscribeSome
from realtime.cluster.member import Member
from realtime.errors import BadRequest, Disconnect, EngineUnavailable, InternalError
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, StreamPosition, UserID

MAX_WHITELIST = 1000
"""Clients that a disconnect may leave."""

MAX_BLOCK_SECONDS = 10 * 365 * 24 * 3600
MAX_BLOCKED_USER = 255
"""Characters of the ID of a user who can be blocked: every node remembers it."""


async def subscribe(
    member: Member,
    user: UserID,
    channel: ChannelName,
    *,
    client: ClientID = "",
    session: str = "",
    info: Payload | None = None,
    data: Payload | None = None,
    expires_at: float | None = None,
    since: StreamPosition | None = None,
    overrides: Mapping[str, bool] | None = None,
) -> None:
    """Subscribe a user's connections to a channel.

    Args:
        member: the member of the service that this process is.
        user: the user ID; "" for anonymous clients.
        channel: the name of the channel.
        client, session: as in `unsubscribe`.
        info: the channel info.
        data: for the clients.
        expires_at: when the subscription expires, Unix seconds; None for never.
        since: where the clients continue, in channels with forced recovery.
        overrides: the names of options in `Overrides`, and what they are for these subscriptions.

    Raises:
        InternalError: `expires_at` has passed.
    """
    check_channel(channel, member.config)
    if expires_at is not None and expires_at <= time.time():
        raise InternalError
    await member.subscribe_some(
        SubscribeSome(
            user=user,
            client=client,
            session=session,
            channel=channel,
            info=_text(info),
            data=_text(data),
            expires_at=expires_at,
            since=since,
            overrides=dict(overrides) if overrides else None,
        )
    )


def _text(value: Payload | None) -> str | None:
    return None if value is None else value.raw.decode()


async def unsubscribe(
    member: Member,
    user: UserID,
    channel: ChannelName,
    *,
    client: ClientID = "",
    session: str = "",
    anonymous: bool = False,
) -> list[str]:
    """Unsubscribe a user's connections from a channel; "" means from all their channels.

    Args:
        member: the member of the service that this process is.
        user: the user ID.
        channel: the name of the channel.
        client: only this connection; "" for every one.
        session: only the connection with this session; "" for every one.
        anonymous: whether the user "" stands for anonymous clients; otherwise it is refused.

    Returns:
        The names of the nodes that are silent: they do it when they are back.
    """
    if not user and not anonymous:
        raise BadRequest
    if channel:
        check_channel(channel, member.config)
    await member.unsubscribe_user(user, channel, client=client, session=session)
    return await _silent(member)


async def _silent(member: Member) -> list[str]:
    """Return the nodes that are silent, as far as is known: what was sent stays sent."""
    try:
        return await member.silent()
    except EngineUnavailable:
        return []


async def disconnect(
    member: Member,
    user: UserID,
    *,
    client: ClientID = "",
    session: str = "",
    whitelist: Sequence[ClientID] = (),
    code: int | None = None,
    reason: str = "",
    anonymous: bool = False,
) -> list[str]:
    """Disconnect a user's connections; by default their clients do not reconnect.

    Args:
        member: the member of the service that this process is.
        user: the user ID.
        client: as in `unsubscribe`.
        session: as in `unsubscribe`.
        whitelist: the connections that stay.
        code: 3000 to 4999, which tells clients whether to reconnect: from 3500 to 3999 and from
            4500 on they do not. None: "force disconnect".
        reason: at most 123 bytes in a close frame.
        anonymous: as in `unsubscribe`.

    Returns:
        The names of the nodes that are silent: they do it when they are back.

    Raises:
        BadRequest: the code or the reason is not one, or `whitelist` is too long.
    """
    if (not user and not anonymous) or len(whitelist) > MAX_WHITELIST:
        raise BadRequest
    disconnect = None if code is None else _disconnect(code, reason)
    await member.disconnect_user(user, disconnect, client=client, session=session, keep=whitelist)
    return await _silent(member)


def _disconnect(code: int, reason: str) -> Disconnect:
    if not 3000 <= code <= 4999:
        raise BadRequest
    try:
        return Disconnect.received(code, reason, reconnect=code % 1000 < 500)
    except ValueError:
        raise BadRequest from None


async def refresh(
    member: Member,
    user: UserID,
    *,
    client: ClientID = "",
    session: str = "",
    expires_at: float | None = None,
    info: Payload | None = None,
) -> None:
    """Set when a user's connections expire.

    Args:
        member: the member of the service that this process is.
        user: the user ID; "" for anonymous clients.
        client: as in `unsubscribe`.
        session: as in `unsubscribe`.
        expires_at: Unix seconds; a past time closes the connections, None ends their expiry.
        info: their connection info; None: it stays as it is.
    """
    await member.refresh_user(user, expires_at, info, client=client, session=session)


async def block(member: Member, user: UserID, until: float) -> list[str]:
    """Close a user's connections, and refuse new ones.

    Args:
        member: the member of the service that this process is.
        user: the user ID.
        until: when that ends, Unix seconds.

    Returns:
        The names of the nodes that are silent: they do it when they are back.

    Raises:
        BadRequest: there is no user, its ID is too long, or `until` is past or too far away.
        LimitExceeded: too many users are blocked.
    """
    if not user or len(user) > MAX_BLOCKED_USER:
        raise BadRequest
    if not 0 < until - time.time() <= MAX_BLOCK_SECONDS + 1:  # callers round up
        raise BadRequest
    await member.block_user(user, until)
    return await _silent(member)


async def unblock(member: Member, user: UserID) -> list[str]:
    """Let a user connect again.

    Returns:
        The names of the nodes that are silent: they do it when they are back.

    Raises:
        BadRequest: there is no user.
    """
    if not user:
        raise BadRequest
    await member.unblock_user(user)
    return await _silent(member)


async def blocked(member: Member) -> dict[UserID, float]:
    """Return the users who are blocked, and when that ends, Unix seconds; the first end first."""
    ends = await member.blocked()
    return dict(sorted(ends.items(), key=lambda item: (item[1], item[0])))
