"""Listeners: clients whose URL names the channels, with the recovery of a browser's EventSource.

    connect with the last ID ─► retry, ID, (reset), what was missed, publications ─► the end ─► ...

An EventSource knows two things: the ID of the last event, and for how long to wait when the
response has ended. The ID holds its position in each channel; `reset` says that views begin anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from realtime.protocol import event_ids
from realtime.protocol.messages import StreamPosition
from realtime.transports.streaming.application import EVENTS_PATH
from tests.simulation.clients import State, Subscription
from tests.simulation.http_server import Request
from tests.simulation.network import End
from tests.simulation.wires import Exchange

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

HEARTBEAT_TIMEOUT = 60.0
"""Seconds without any byte after which a page opens its EventSource anew, as pages have to."""
DEFAULT_RETRY = 3.0


class SimulatedListener:
    """One EventSource, until `stop`."""

    def __init__(self, service: Service, name: str, channels: Sequence[str]) -> None:
        self._service = service
        self._world = service.world
        self._judge = service.judge
        self.name = name
        self.subscriptions = {name: Subscription(name, True) for name in channels}
        self.state = State.AWAY
        self._exchange: Exchange | None = None
        self._run = 0
        self._last_id = ""
        self._retry = DEFAULT_RETRY
        self._heard_at = 0.0
        self._bytes = b""
        self._is_first = True
        self._come_back(0.0)

    @property
    def end(self) -> End | None:
        """Its end of the connection, if there is one."""
        return None if self._exchange is None else self._exchange.end

    @property
    def is_settled(self) -> bool:
        """Whether it listens, and has its first ID."""
        return self.state is State.CONNECTED

    def _come_back(self, pause: float) -> None:
        self.state = State.AWAY
        self._run += 1
        pause += self._world.random.random() * 0.3
        self._world.after(pause, self._connect, self._run)

    def _connect(self, run: int) -> None:
        if run == self._run and self.state is State.AWAY:
            self.state = State.CONNECTING
            self._world.after(HEARTBEAT_TIMEOUT, self._check_heard, run)
            self._bytes, self._is_first = b"", True
            self._heard_at = self._world.now
            query = [("channel", channel) for channel in self.subscriptions]
            query.append(("token", self._service.token(self.name, "")))
            headers = ((b"last-event-id", self._last_id.encode()),) if self._last_id else ()
            request = Request("GET", EVENTS_PATH, query=urlencode(query).encode(), headers=headers)
            self._exchange = Exchange(
                self._service,
                request,
                lambda piece: self.receive(run, piece),
                lambda status: self._answered(run, status),
            )

    def _answered(self, run: int, status: int) -> None:
        if status not in (0, 200):
            self._judge.fail(f"{self.name} was answered {status}")
        self.ended(run)

    def _check_heard(self, run: int) -> None:
        if run != self._run:
            return
        silent = self._world.now - self._heard_at
        if silent >= HEARTBEAT_TIMEOUT:
            self.ended(run)
        else:
            self._world.after(HEARTBEAT_TIMEOUT - silent + 0.001, self._check_heard, run)

    def ended(self, run: int) -> None:
        """Come back with the last ID."""
        if run == self._run and self.state is not State.GONE:
            if self._exchange is not None:
                self._exchange.abort()
                self._exchange = None
            self._come_back(self._retry)

    def stop(self) -> None:
        """Close the EventSource."""
        if self._exchange is not None:
            self._exchange.abort()
        self._exchange = None
        self._run += 1
        self.state = State.GONE

    # events

    def receive(self, run: int, piece: bytes) -> None:
        """Take bytes of the response."""
        if run != self._run:
            return
        self._heard_at = self._world.now
        *events, self._bytes = (self._bytes + piece).split(b"\n\n")
        for event in events:
            self._take(event)

    def _take(self, event: bytes) -> None:
        fields: dict[bytes, bytes] = {}
        for line in event.split(b"\n"):
            name, _, value = line.partition(b": ")
            fields[name] = value
        if b"retry" in fields:
            self._retry = int(fields[b"retry"]) / 1000
        if b"id" in fields:
            self._last_id = fields[b"id"].decode()
        if b"id" in fields and self._is_first:
            self._is_first = False
            self.state = State.CONNECTED
            for channel, position in self._positions().items():
                self._judge.enter(self.name, channel)
                if not self.subscriptions[channel].active:
                    self._begin(channel, position)
        kind = fields.get(b"event", b"").decode()
        if kind == "reset":
            for channel in json.loads(fields[b"data"])["channels"]:
                self._begin(channel, self._positions()[channel])
        elif kind == "disconnect":
            self._judge.fail(f"{self.name} was told not to come back: {fields}")
        elif b"data" in fields:
            channel = kind or next(iter(self.subscriptions))
            position = self._positions()[channel]
            offset = 0 if position.offset == self.subscriptions[channel].offset else position.offset
            self.subscriptions[channel].offset = position.offset
            self._judge.deliver(self.name, channel, int(fields[b"data"]), offset)

    def _positions(self) -> dict[str, StreamPosition]:
        known = event_ids.decode(self._last_id, self.subscriptions)
        return {channel: position for channel, position in known.items() if position is not None}

    def _begin(self, channel: str, position: StreamPosition) -> None:
        self.subscriptions[channel].active = True
        self.subscriptions[channel].offset = position.offset
        self._judge.begin_view(self.name, channel, position.offset, position.epoch)
