"""Whether a connection may go on: the site is asked, or says it by itself."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from realtime import logs
from realtime.clients.session import Session
from realtime.errors import Disconnect, DisconnectExpired, Error, InternalError
from realtime.node.hooks import Caller, Refresh
from realtime.node.node import Node
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.messages import UINT32_MAX, ClientID, UserID

logger = logging.getLogger("realtime.client")

REFRESH_RETRY = 60.0
"""Seconds until the site is asked again when it could not answer whether a connection may go on."""


class Client(Protocol):
    """What is needed of a client."""

    node: Node
    id: ClientID
    session: Session

    codec: Codec

    @property
    def user(self) -> UserID: ...

    def caller(self) -> Caller: ...

    def push(self, message: bytes) -> None: ...

    def set_timer(self) -> None: ...

    def is_closing(self) -> bool: ...

    def expiry_deadline(self, expires_at: float | None) -> float | None: ...

    def extend(self, expiry_deadline: float | None, info: Payload | None) -> None: ...

    def close(self, disconnect: Disconnect | None) -> None: ...


async def refresh(client: Client) -> None:
    """Ask the site whether a connection may go on; close it if not. Never raises."""
    try:
        answer = await _ask_site(client)
    except Disconnect as disconnect:
        # its traceback holds frames that hold the client
        client.close(disconnect.with_traceback(None))
        return
    except Exception as error:  # whatever it is, the connection must not be left without expiry
        logger.warning(
            "Refresh of client %s failed, retrying in %g s",
            client.id,
            REFRESH_RETRY,
            exc_info=not isinstance(error, InternalError),  # logged where it happened
            extra=logs.of(client),
        )
        client.extend(client.node.timers.now() + REFRESH_RETRY, None)
        return
    if answer is None or answer.expires_at <= time.time():
        client.close(DisconnectExpired())
        return
    client.extend(client.expiry_deadline(answer.expires_at), answer.info)


def refresh_until(client: Client, expires_at: float | None, info: Payload | None) -> None:
    """Set when a connection expires, and tell the client; see `node.subscriber.Subscriber`.

    A client that is connecting learns it from its reply.
    """
    if client.is_closing():
        return
    if expires_at is not None and expires_at <= time.time():
        client.close(DisconnectExpired())
        return
    client.session.expiry_deadline = client.expiry_deadline(expires_at)
    client.session.refreshed(info, None)  # the deadline, also none, is set
    client.set_timer()
    if not client.session.answered:
        return
    ttl = 0 if expires_at is None else max(1, int(expires_at - time.time()))
    message = client.codec.refreshed(expires_at is not None, min(ttl, UINT32_MAX))
    if message is not None:
        client.push(message)


async def _ask_site(client: Client) -> Refresh | None:
    try:
        return await client.node.hooks.refresh(client.caller(), client.session.auth_session)
    except InternalError:
        raise
    except Error:
        return None
