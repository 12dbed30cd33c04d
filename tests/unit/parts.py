"""Parts that the tests of the core share: JSON values, a movable clock, a recording client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from realtime import payload
from realtime.cluster.context import Context
from realtime.cluster.control import ServerSubscription, SubscribeSome
from realtime.cluster.member import Member
from realtime.cluster.survey import ClientReport
from realtime.config.options import Config
from realtime.engine.base import Streams
from realtime.errors import Disconnect, DisconnectInsufficientState
from realtime.metrics import Outage
from realtime.node.subscriber import Tap
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.messages import (
    SERVER_UNSUBSCRIBE,
    ChannelName,
    ClientInfo,
    StreamPosition,
    UnsubscribeReason,
)
from realtime.protocol.v1.json import JSONCodec
from realtime.server_api import operations
from realtime.timers import Timers

quickly = settings(max_examples=60)
"""Property tests run beside others on few cores: no deadline per example."""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
"""Anything JSON can say."""

white_space = st.text(" \t\r\n", max_size=4).map(str.encode)


def data(text: str | bytes) -> Payload:
    """A payload of JSON text."""
    return payload.check(text.encode() if isinstance(text, str) else text)


async def position_of(
    streams: Streams, channel: ChannelName, at: int | None = None
) -> StreamPosition:
    """Return the top position of one channel."""
    return (await streams.positions([channel], at))[0]


async def turns(number: int = 5) -> None:
    """Let the event loop turn a few times, for what was scheduled to happen."""
    for _ in range(number):
        await asyncio.sleep(0)


BUSY_TURNS = 100
"""Of the loop, before `eventually` leaves the processor to servers."""


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; works also while the loop's clock stands still."""
    deadline = time.monotonic() + 20
    turn = 0
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        await asyncio.sleep(0)
        turn += 1
        if turn > BUSY_TURNS:
            time.sleep(0.001)  # a server's turn: the loop may have no clock


def context(config: Config, timers: Timers, spawn: Any = asyncio.create_task) -> Context:
    """What parts of a node share, for one that is made without a node."""
    return Context("U", config, asyncio.get_running_loop(), timers, spawn, Outage())


class Clock:
    """The clock of an event loop, stopped; it moves when a test moves it.

    It begins at the same time everywhere, whatever the machine's clock says: sums of steps
    are rounded differently at different times.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, now: float = 4096) -> None:
        self.now = now
        loop.time = self.read  # type: ignore[method-assign]

    def read(self) -> float:
        return self.now

    async def advance(self, seconds: float) -> None:
        """Move the clock, and let what is due happen."""
        self.now += seconds
        await turns()


class RecordingClient:
    """A `feed.Subscriber` that keeps what hub and node do to it."""

    def __init__(
        self,
        client_id: str = "C",
        user: str = "17",
        *,
        codec: Codec | None = None,
        positioned: str = "",
    ) -> None:
        """Args: `positioned`: the channel in which it must not miss a publication."""
        self.id = client_id
        self.positioned = {positioned}
        self.codec: Codec = codec or JSONCodec(use_offset=True)
        self.transport: Any = SimpleNamespace(name="websocket", session=f"session of {client_id}")
        self.pushed: list[bytes] = []
        self.closes: list[Disconnect | None] = []
        self.unsubscribed: list[str] = []
        self.asked: list[str] = []
        self.refreshed: list[tuple[float | None, Payload | None]] = []
        self.subscribed: list[ServerSubscription] = []
        self.tap: Tap | None = None
        self._user = user

    @property
    def user(self) -> str:
        return self._user

    @property
    def auth_session(self) -> str:
        return ""

    def refresh_until(self, expires_at: float | None, info: Payload | None) -> None:
        self.refreshed.append((expires_at, info))

    async def subscribe(self, wanted: ServerSubscription) -> None:
        self.subscribed.append(wanted)

    async def refresh(self) -> None:
        raise AssertionError("a recording client belongs to no auth session")

    @property
    def num_channels(self) -> int:
        return 0

    def report(self, max_channels: int) -> ClientReport:
        return ClientReport(self.id, "websocket", 1.0, 0, [])

    def mirror(self, tap: Tap | None) -> None:
        self.tap = tap

    def push(self, message: bytes) -> None:
        self.pushed.append(message)

    notify = push

    def info_in(self, channel: str) -> ClientInfo:
        return ClientInfo(self._user, self.id)

    async def unsubscribe(self, channel: str, why: UnsubscribeReason = SERVER_UNSUBSCRIBE) -> None:
        self.unsubscribed.append(channel)

    def ask_site(self, channel: str) -> None:
        self.asked.append(channel)

    def has_position(self, channel: str) -> bool:
        return channel in self.positioned

    def lose_position(self, channel: str) -> None:
        self.close(DisconnectInsufficientState())

    def close(self, disconnect: Disconnect | None) -> None:
        self.closes.append(disconnect)

    def is_closing(self) -> bool:
        return bool(self.closes)

    @property
    def close_codes(self) -> list[Any]:
        return [None if disconnect is None else disconnect.code for disconnect in self.closes]


async def subscribe_user(member: Member, user: str, channel: str, **how: Any) -> None:
    """Subscribe a user's connections as the server does. `info` and `data` are payloads."""
    texts = {name: how.pop(name).raw.decode() for name in ("info", "data") if name in how}
    await operations.subscribe(member, SubscribeSome(user=user, channel=channel, **how, **texts))
