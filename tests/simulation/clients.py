"""Clients of both generations, as the published ones behave: they come back, recover, and go on.

States of a client, and the events that lead to them:

    AWAY         it waits to connect
    CONNECTING   a socket is being opened, or `connect` has no reply yet
    CONNECTED    it subscribes to its channels, each by itself
    GONE         it was told not to come back, or was stopped

    AWAY ── its pause is over ──► CONNECTING ── reply ──► CONNECTED
    CONNECTING, CONNECTED ── closed, no reply within 5 s, no ping in time ──► AWAY
    any ── stop ──► GONE

    first generation    pings by itself; is closed with 3010 where it cannot go on
    second generation   answers pings; is unsubscribed with 2500 and subscribes again

Tokens name a channel for some clients: these are subscribed with the connect reply, and recover
with `connect`. A client that the server unsubscribes comes back to the channel after a while.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from tests.simulation.judge import Publishing
from tests.simulation.network import End
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

REPLY_TIMEOUT = 5.0
PING_INTERVAL = 25.0
PING_DELAY = 10.0
MIN_PAUSE, MAX_PAUSE = 0.2, 20.0

METHODS = {"connect": 0, "subscribe": 1, "unsubscribe": 2, "publish": 3, "ping": 7}

RESUBSCRIBES = 2500
"""Codes of `unsubscribe` from this one on have the client subscribe again."""


class State(Enum):
    AWAY = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    GONE = auto()


@dataclass(slots=True)
class Subscription:
    """One channel of a client."""

    channel: str
    has_history: bool
    by_server: bool = False
    """Whether its token names it."""
    active: bool = False
    asking: bool = False
    offset: int = 0
    epoch: str = ""
    recovers: bool = False
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Close:
    """The close frame of a socket."""

    code: int
    reason: str


_decoded: dict[bytes, list[dict[str, Any]]] = {}


def decode(frame: bytes) -> list[dict[str, Any]]:
    """Return the messages of a frame; clients that get the same one share them."""
    messages = _decoded.get(frame)
    if messages is None:
        if len(_decoded) > 2000:
            _decoded.clear()
        messages = _decoded[frame] = [json.loads(line) for line in frame.splitlines()]
    return messages


class SimulatedClient:
    """See the module."""

    def __init__(
        self,
        service: Service,
        process: Process,
        name: str,
        generation: int,
        channels: Mapping[str, bool],
        by_server: str = "",
    ) -> None:
        """
        Args:
            channels: whether each has history.
            by_server: a further channel, which the client's token names; "" for none.
        """
        self._service = service
        self._world = service.world
        self._judge = service.judge
        self._process = process
        self.name = name
        self.generation = generation
        self.subscriptions = {
            channel: Subscription(channel, has) for channel, has in channels.items()
        }
        if by_server:
            self.subscriptions[by_server] = Subscription(by_server, True, by_server=True)
        self._token = service.token(name, by_server)
        self.state = State.AWAY
        self.client_id = ""
        self.refusals: list[Any] = []
        self._end: End | None = None
        self._run = 0
        """Of the connection; what belongs to an earlier one is over."""
        self._attempts = 0
        self._next_id = 0
        self._waiting: dict[int, tuple[Callable[[dict[str, Any], Any], None], Any]] = {}
        self._heard_at = 0.0
        self._ping = 0.0
        self.begin_again()

    # connecting

    def begin_again(self) -> None:
        """Connect after a pause."""
        self.state = State.AWAY
        self._run += 1
        longest = min(MAX_PAUSE, MIN_PAUSE * 2 ** min(self._attempts, 7))
        self._attempts += 1
        self._world.after(self._world.random.uniform(0.05, longest), self._connect, self._run)

    def _connect(self, run: int) -> None:
        if run != self._run or self.state is not State.AWAY:
            return
        self.state = State.CONNECTING
        self._process.spawn(self._open(run))
        self._world.after(REPLY_TIMEOUT, self._give_up, run)

    async def _open(self, run: int) -> None:
        place = self._service.any_node()
        try:
            end, _ = await self._service.network.open(
                self._process, lambda: _Socket(self, run), place
            )
        except OSError:
            if run == self._run:
                self.begin_again()
            return
        if run != self._run:
            end.abort()
            return
        self._end = end
        self._waiting.clear()
        self._call("connect", self._connect_params(), self._connected, run)

    def _connect_params(self) -> dict[str, Any]:
        params: dict[str, Any] = {"token": self._token}
        subs = {
            each.channel: {"recover": True, "epoch": each.epoch, "offset": each.offset}
            for each in self.subscriptions.values()
            if each.by_server and each.recovers
        }
        return params | {"subs": subs} if subs else params

    def _give_up(self, run: int) -> None:
        if run == self._run and self.state is State.CONNECTING:
            self.lost(run, None)

    def lost(self, run: int, close: Close | None) -> None:
        """Come back, if the server does not say otherwise."""
        if run != self._run or self.state is State.GONE:
            return
        self._judge.note(f"{self.name} lost its connection: {close}")
        if self._end is not None:
            self._end.abort()
            self._end = None
        for subscription in self.subscriptions.values():
            subscription.active = subscription.asking = False
        if close is not None and self._is_final(close):
            self.refusals.append(close)
            self.state = State.GONE
            return
        self.begin_again()

    def _is_final(self, close: Close) -> bool:
        if self.generation == 2:
            return 3500 <= close.code < 4000 or 4500 <= close.code < 5000
        try:
            return not json.loads(close.reason).get("reconnect", True)
        except ValueError:
            return False

    def stop(self) -> None:
        """Go, with a close frame."""
        if self._end is not None:
            self._end.close()
        self._end = None
        self._run += 1
        self.state = State.GONE

    # commands

    def _send(self, message: dict[str, Any]) -> None:
        if self._end is not None:
            self._end.write(json.dumps(message, separators=(",", ":")).encode())

    def _call(
        self,
        method: str,
        params: dict[str, Any],
        answer: Callable[[dict[str, Any], Any], None],
        context: Any,
    ) -> None:
        self._next_id += 1
        command_id = self._next_id
        self._waiting[command_id] = answer, context
        if self.generation == 2:
            self._send({"id": command_id, method: params})
        else:
            self._send({"id": command_id, "method": METHODS[method], "params": params})
        self._world.after(REPLY_TIMEOUT, self._check_reply, self._run, command_id)

    def _check_reply(self, run: int, command_id: int) -> None:
        if run == self._run and command_id in self._waiting:
            self.lost(run, None)

    def receive(self, run: int, frames: list[Any]) -> None:
        """Take what arrived on a socket."""
        for frame in frames:
            if run != self._run:
                return
            if isinstance(frame, Close):
                self.lost(run, frame)
                return
            self._heard_at = self._world.now
            for message in decode(frame):
                if not message:
                    self._send({})
                elif "push" in message:
                    self._pushed(message["push"])
                elif message.get("id"):
                    self._replied(message)
                elif "result" in message:
                    self._pushed_first(message["result"])
                else:
                    self._judge.fail(f"{self.name} got {message}")
                if run != self._run:
                    return

    def _replied(self, message: dict[str, Any]) -> None:
        waiting = self._waiting.pop(message["id"], None)
        if waiting is None:
            self._judge.fail(f"{self.name} got a reply to nothing: {message}")
            return
        answer, context = waiting
        answer(message, context)

    def _result(self, message: dict[str, Any], method: str) -> dict[str, Any]:
        result: dict[str, Any] = message.get(method if self.generation == 2 else "result", {})
        return result

    def _connected(self, message: dict[str, Any], run: int) -> None:
        if "error" in message:
            self.refusals.append(message["error"])
            self.lost(run, None)
            return
        result = self._result(message, "connect")
        self.client_id = result["client"]
        self.state = State.CONNECTED
        self._attempts = 0
        self._heard_at = self._world.now
        self._ping = result.get("ping", 0) if self.generation == 2 else 0
        self._judge.note(f"{self.name} connected as {self.client_id}")
        self._world.after((self._ping or PING_INTERVAL) + PING_DELAY, self._check_heard, run)
        if self.generation == 1:
            self._world.after(PING_INTERVAL, self._send_ping, run)
        subs = result.get("subs") or {}
        for subscription in self.subscriptions.values():
            if not subscription.by_server:
                self.subscribe(subscription, run)
            elif subscription.channel in subs:
                self._entered(subscription, subs[subscription.channel])
            else:
                self._judge.fail(f"{self.name} was not subscribed to {subscription.channel}")

    def _send_ping(self, run: int) -> None:
        if run == self._run and self.state is State.CONNECTED:
            self._call("ping", {}, lambda message, context: None, None)
            self._world.after(PING_INTERVAL, self._send_ping, run)

    def _check_heard(self, run: int) -> None:
        if run != self._run or self.state is not State.CONNECTED:
            return
        patience = (self._ping or PING_INTERVAL) + PING_DELAY
        silent = self._world.now - self._heard_at
        if silent >= patience:
            self.lost(run, None)
        else:
            self._world.after(patience - silent + 0.001, self._check_heard, run)

    # subscribing

    def subscribe(self, subscription: Subscription, run: int) -> None:
        """Subscribe to a channel, and recover where it was left."""
        if run != self._run or subscription.asking or subscription.active:
            return
        subscription.asking = True
        params: dict[str, Any] = {"channel": subscription.channel}
        if subscription.recovers:
            params |= {"recover": True, "epoch": subscription.epoch, "offset": subscription.offset}
        self._call("subscribe", params, self._subscribed, (subscription, run))

    def _subscribed(self, message: dict[str, Any], context: tuple[Subscription, int]) -> None:
        subscription, run = context
        subscription.asking = False
        if "error" in message:
            self._judge.note(f"{self.name} is refused {subscription.channel}: {message['error']}")
            self.refusals.append(message["error"])
            subscription.attempts += 1
            pause = min(MAX_PAUSE, 0.5 * 2 ** min(subscription.attempts, 5))
            self._world.after(
                self._world.random.uniform(0.1, pause), self.subscribe, subscription, run
            )
            return
        subscription.attempts = 0
        self._entered(subscription, self._result(message, "subscribe"))

    def _entered(self, subscription: Subscription, result: dict[str, Any]) -> None:
        subscription.active = True
        self._judge.note(f"{self.name} subscribed: {subscription.channel}: {result}")
        if not subscription.has_history:
            self._judge.enter(self.name, subscription.channel)
            return
        publications = result.get("publications", [])
        first = publications[0]["offset"] - 1 if publications else result.get("offset", 0)
        recovered = bool(result.get("recovered"))
        if not (subscription.recovers and recovered):
            # what it missed is not known to it: it loads its state, and goes on from here
            subscription.offset, subscription.epoch = first, result["epoch"]
            self._judge.begin_view(self.name, subscription.channel, first, result["epoch"])
        elif result["epoch"] != subscription.epoch:
            self._judge.fail(f"{self.name} recovered {subscription.channel} in another epoch")
        subscription.recovers = True
        for publication in publications:
            self._take(subscription, publication)
        if self.generation == 1 and result.get("offset", 0) != subscription.offset:
            self._judge.fail(
                f"{self.name} recovered {subscription.channel} up to {subscription.offset}, and"
                f" the reply says {result.get('offset', 0)}"
            )

    def _take(self, subscription: Subscription, publication: dict[str, Any]) -> None:
        offset = publication.get("offset", 0)
        if offset:
            subscription.offset = offset
        self._judge.deliver(self.name, subscription.channel, publication["data"], offset)

    def _pushed(self, push: dict[str, Any]) -> None:
        channel = push.get("channel", "")
        subscription = self.subscriptions.get(channel)
        if "pub" in push:
            self._published(subscription, channel, push["pub"])
        elif "unsubscribe" in push:
            self._unsubscribed(subscription, push["unsubscribe"].get("code", 0))

    def _pushed_first(self, push: dict[str, Any]) -> None:
        channel = push.get("channel", "")
        subscription = self.subscriptions.get(channel)
        kind = push.get("type", 0)
        if kind == 0:
            self._published(subscription, channel, push["data"])
        elif kind == 3:
            self._unsubscribed(subscription, 0)

    def _unsubscribed(self, subscription: Subscription | None, code: int) -> None:
        # the push comes also to connections that are not in the channel
        if subscription is None or not subscription.active:
            return
        self._judge.note(f"{self.name} was unsubscribed from {subscription.channel}: {code}")
        subscription.active = False
        if code >= RESUBSCRIBES:
            self.subscribe(subscription, self._run)
        else:
            self._come_back(subscription)

    def _come_back(self, subscription: Subscription) -> None:
        subscription.by_server = False
        pause = self._world.random.choice((0.0, 0.001, 0.5, 2.0))
        self._world.after(pause, self.subscribe, subscription, self._run)

    def publish(self, channel: str) -> None:
        """Publish, as a client may in this channel."""
        if self.state is State.CONNECTED:
            publishing = self._judge.begin(channel)
            params = {"channel": channel, "data": publishing.number}
            self._call("publish", params, self._has_published, publishing)

    def _has_published(self, message: dict[str, Any], publishing: Publishing) -> None:
        if "error" not in message:
            # its position is not in the reply
            publishing.acknowledged = self._world.now

    def _published(
        self, subscription: Subscription | None, channel: str, publication: dict[str, Any]
    ) -> None:
        if subscription is None or not subscription.active:
            self._judge.fail(f"{self.name} was pushed {publication} of {channel}, and is not in it")
            return
        self._take(subscription, publication)

    @property
    def is_settled(self) -> bool:
        """Whether it is connected, and subscribed to all of its channels."""
        return self.state is State.CONNECTED and all(
            subscription.active for subscription in self.subscriptions.values()
        )

    @property
    def end(self) -> End | None:
        """Its end of the socket, if there is one."""
        return self._end


class _Socket:
    """The client's side of one connection."""

    def __init__(self, client: SimulatedClient, run: int) -> None:
        self._client = client
        self._run = run

    def connection_made(self, transport: End) -> None:
        pass

    def data_received(self, data: list[Any]) -> None:
        self._client.receive(self._run, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.lost(self._run, None)
