"""Clients of both generations, as the published ones behave: they come back, recover, and go on.

States of a client, and the events that lead to them:

    AWAY         it waits to connect
    CONNECTING   a wire is being opened, or `connect` has no reply yet
    CONNECTED    it subscribes to its channels, each by itself
    GONE         it was told not to come back, or was stopped

    AWAY ── its pause is over ──► CONNECTING ── reply ──► CONNECTED
    CONNECTING, CONNECTED ── closed, no reply within 5 s, no ping in time ──► AWAY
    any ── stop ──► GONE

    first generation    pings by itself; is closed with 3010 where it cannot go on
    second generation   answers pings; is unsubscribed with 2500 and subscribes again

What carries the frames is a wire (`wires`), and each connection has its own.

Tokens name a channel for some clients: these are subscribed with the connect reply, and recover
with `connect`. A client that the server unsubscribes comes back to the channel after a while.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from realtime.errors import DisconnectInsufficientState, InternalError
from realtime.protocol.messages import INSUFFICIENT_STATE, StreamPosition
from tests.simulation.judge import Publishing
from tests.simulation.network import End
from tests.simulation.plan import SMALL_QUEUE
from tests.simulation.stored import stored
from tests.simulation.wires import SocketWire, SockJSWire, StreamWire, Wire

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

REPLY_TIMEOUT = 5.0
PING_INTERVAL = 25.0
PING_DELAY = 10.0
MIN_PAUSE, MAX_PAUSE = 0.2, 20.0

WEBSOCKET = "websocket"
STREAMS = "http_stream", "sse"
"""They speak the second generation."""
TRANSPORTS = WEBSOCKET, *STREAMS, "xhr_streaming", "xhr"
"""The last two are transports of SockJS."""

METHODS = {"connect": 0, "subscribe": 1, "unsubscribe": 2, "publish": 3, "ping": 7}

NEWEST = "newest:0"
"""A channel whose clients recover the newest publication only."""

PLAIN = "plain:0"
"""A channel without history; in mixed plans with history, for clients that ask for recovery."""

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
    entries: int = 0
    """How often the client was subscribed to it."""


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
        name: str,
        generation: int,
        channels: Mapping[str, bool],
        by_server: str = "",
        transport: str = WEBSOCKET,
    ) -> None:
        """
        Args:
            channels: whether each has history.
            by_server: a further channel, which the client's token names; "" for none.
            transport: one of `TRANSPORTS`.
        """
        self._service = service
        self._world = service.world
        self._judge = service.judge
        self.name = name
        self.generation = generation
        self.transport = transport
        self.subscriptions = {
            channel: Subscription(channel, has) for channel, has in channels.items()
        }
        if by_server:
            self.subscriptions[by_server] = Subscription(by_server, True, by_server=True)
        self._token = service.token(name, by_server)
        self.state = State.AWAY
        self.client_id = ""
        self.refusals: list[Any] = []
        self._wire: Wire | None = None
        self.run = 0
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
        self.run += 1
        longest = min(MAX_PAUSE, MIN_PAUSE * 2 ** min(self._attempts, 7))
        self._attempts += 1
        self._world.after(self._world.random.uniform(0.05, longest), self._connect, self.run)

    def _connect(self, run: int) -> None:
        if run != self.run or self.state is not State.AWAY:
            return
        self.state = State.CONNECTING
        self._world.after(REPLY_TIMEOUT, self._give_up, run)
        self._wire = self._new_wire(run)
        self._wire.open()

    def _new_wire(self, run: int) -> Wire:
        if self.transport == WEBSOCKET:
            return SocketWire(self._service, self, run)
        if self.transport in STREAMS:
            return StreamWire(self._service, self, run, self.transport)
        return SockJSWire(self._service, self, run, self.transport)

    def opened(self, run: int) -> None:
        """Connect: frames can be sent."""
        if run == self.run:
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
        if run == self.run and self.state is State.CONNECTING:
            self.lost(run, None)

    def lost(self, run: int, close: Close | None) -> None:
        """Come back, if the server does not say otherwise."""
        if run != self.run or self.state is State.GONE:
            return
        self._judge.note(f"{self.name} lost its connection: {close}")
        if self._wire is not None:
            self._wire.abort()
            self._wire = None
        self._judge.allow(self.name, "")
        if close is not None and close.code == DisconnectInsufficientState.code:
            known = [each for each in self.subscriptions.values() if each.has_history]
            # of those that it is coming into, their node may still have been in another epoch, or
            # behind what is kept
            if all(self._is_whole(each) and self._may_follow(each) for each in known):
                self._judge.fail(f"{self.name} was disconnected for insufficient state, in none")
        for subscription in self.subscriptions.values():
            subscription.active = subscription.asking = False
            self._judge.allow(self.name, subscription.channel)
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
        if self._wire is not None:
            self._wire.close()
        self._wire = None
        self.run += 1
        self.state = State.GONE

    def closed(self, run: int, code: int, reason: str) -> None:
        """Take what the service says of the end."""
        if run == self.run:
            self._judge.close(self.name, code)
            self.lost(run, Close(code, reason))

    def check_status(self, status: int, known: Sequence[int]) -> None:
        """Check what a request was answered; 0: it has no answer."""
        if status and status not in known:
            self._judge.fail(f"{self.name} was answered {status}")

    # commands

    def _send(self, message: dict[str, Any]) -> None:
        if self._wire is not None:
            self._wire.send(json.dumps(message, separators=(",", ":")).encode())

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
        self._world.after(REPLY_TIMEOUT, self._check_reply, self.run, command_id)

    def _check_reply(self, run: int, command_id: int) -> None:
        if run == self.run and command_id in self._waiting:
            self.lost(run, None)

    def receive(self, run: int, frames: list[Any]) -> None:
        """Take frames that have come."""
        for frame in frames:
            if run != self.run:
                return
            if isinstance(frame, Close):
                self.closed(run, frame.code, frame.reason)
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
                if run != self.run:
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
        assert self._wire is not None
        self._wire.connected(result)
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
        if run == self.run and self.state is State.CONNECTED:
            self._call("ping", {}, lambda message, context: None, None)
            self._world.after(PING_INTERVAL, self._send_ping, run)

    def _check_heard(self, run: int) -> None:
        if run != self.run or self.state is not State.CONNECTED:
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
        if run != self.run or subscription.asking or subscription.active:
            return
        subscription.asking = True
        params: dict[str, Any] = {"channel": subscription.channel}
        if subscription.channel == PLAIN and subscription.has_history:
            params["recoverable"] = True
        if subscription.recovers:
            params |= {"recover": True, "epoch": subscription.epoch, "offset": subscription.offset}
        self._call("subscribe", params, self._subscribed, (subscription, run))

    def _subscribed(self, message: dict[str, Any], context: tuple[Subscription, int]) -> None:
        subscription, run = context
        subscription.asking = False
        if "error" in message:
            self._judge.note(f"{self.name} is refused {subscription.channel}: {message['error']}")
            self._check_error(message["error"])
            self.refusals.append(message["error"])
            subscription.attempts += 1
            pause = min(MAX_PAUSE, 0.5 * 2 ** min(subscription.attempts, 5))
            self._world.after(
                self._world.random.uniform(0.1, pause), self.subscribe, subscription, run
            )
            return
        subscription.attempts = 0
        self._entered(subscription, self._result(message, "subscribe"))

    def _check_error(self, error: dict[str, Any]) -> None:
        if error["code"] == InternalError.code:
            self._judge.miss_engine(self.name, error)

    def _entered(self, subscription: Subscription, result: dict[str, Any]) -> None:
        subscription.active = True
        subscription.entries += 1
        self._judge.note(f"{self.name} subscribed: {subscription.channel}: {result}")
        self._judge.enter(self.name, subscription.channel)
        if not subscription.has_history:
            return
        publications = result.get("publications", [])
        if subscription.channel == NEWEST:
            self._check_newest(subscription, result)
            subscription.recovers = False
        first = publications[0]["offset"] - 1 if publications else result.get("offset", 0)
        recovered = bool(result.get("recovered"))
        if subscription.recovers and not recovered and self._is_whole(subscription):
            # unless the server has unsubscribed it meanwhile, and says so now
            about = subscription, subscription.entries, subscription.offset
            self._world.after(0.1, self._check_refused, self.run, *about)
        if not (subscription.recovers and recovered):
            # what it missed is not known to it: it loads its state, and goes on from here
            subscription.offset, subscription.epoch = first, result["epoch"]
            self._judge.begin_view(self.name, subscription.channel, first, result["epoch"])
        elif result["epoch"] != subscription.epoch:
            self._judge.fail(f"{self.name} recovered {subscription.channel} in another epoch")
        subscription.recovers = True  # from now on
        for publication in publications:
            self._take(subscription, publication)
        if self.generation == 1 and result.get("offset", 0) != subscription.offset:
            self._judge.fail(
                f"{self.name} recovered {subscription.channel} up to {subscription.offset}, and"
                f" the reply says {result.get('offset', 0)}"
            )

    def _check_newest(self, subscription: Subscription, result: dict[str, Any]) -> None:
        """Check that the client gets the newest publication, if it is kept and asked for."""
        offsets = [each["offset"] for each in result.get("publications", [])]
        kept = stored(self._service, NEWEST)
        since = subscription.offset, subscription.epoch
        where = f"{self.name} came back to {NEWEST} from {since}: {result}"
        if not subscription.recovers:
            if offsets:
                self._judge.fail(f"{where}, and did not ask")
        elif not result.get("recovered"):
            # it may have been published again when it is looked for here
            if kept is not None and kept.first < kept.top == result.get("offset", 0):
                about = subscription, subscription.entries, subscription.offset
                self._world.after(0.1, self._check_refused, self.run, *about)
        elif not offsets and since != (result.get("offset", 0), result["epoch"]):
            self._judge.fail(f"{where}, without the newest")
        elif offsets and (
            (since[0] == offsets[0] and since[1] == result["epoch"]) or len(offsets) > 1
        ):
            self._judge.fail(f"{where}, with what it had")

    def _is_whole(self, subscription: Subscription) -> bool:
        """Return whether the client can recover: all is kept, and is not more than it may get."""
        if self._service.plan.queue_size == SMALL_QUEUE:
            return False
        since = StreamPosition(subscription.offset, subscription.epoch)
        kept = stored(self._service, subscription.channel)
        return kept is not None and kept.is_whole(since)

    def _may_follow(self, subscription: Subscription) -> bool:
        """Return whether its node has followed the channel, or can follow all of it."""
        kept = stored(self._service, subscription.channel)
        is_all_there = kept is not None and kept.first == 1 and not self._judge.may_end_epochs
        return subscription.active or is_all_there

    def _check_refused(self, run: int, subscription: Subscription, entry: int, offset: int) -> None:
        if run == self.run and subscription.active and subscription.entries == entry:
            self._judge.fail(
                f"{self.name} did not recover {subscription.channel} from {offset}, and nothing"
                " was lost"
            )

    def _take(self, subscription: Subscription, publication: dict[str, Any]) -> None:
        offset = publication.get("offset", 0) if subscription.has_history else 0
        if offset:
            subscription.offset = offset
        self._judge.deliver(self.name, subscription.channel, publication["data"], offset)

    def _pushed(self, push: dict[str, Any]) -> None:
        channel = push.get("channel", "")
        subscription = self.subscriptions.get(channel)
        if "pub" in push:
            self._published(subscription, channel, push["pub"])
        elif "disconnect" in push:
            why = push["disconnect"]
            self.closed(self.run, why["code"], why.get("reason", ""))
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
        self._judge.allow(self.name, subscription.channel)
        if code == INSUFFICIENT_STATE.code and self._is_whole(subscription):
            self._judge.fail(f"{self.name} lost its state in {subscription.channel} for no reason")
        if code >= RESUBSCRIBES:
            self.subscribe(subscription, self.run)
        else:
            self._come_back(subscription)

    def _come_back(self, subscription: Subscription) -> None:
        subscription.by_server = False
        pause = self._world.random.choice((0.0, 0.001, 0.5, 2.0))
        self._world.after(pause, self.subscribe, subscription, self.run)

    def publish(self, channel: str) -> None:
        """Publish, as a client may in this channel."""
        if self.state is State.CONNECTED:
            sender = f"{self.name}#{self.run}" if self._wire and self._wire.keeps_order else ""
            publishing = self._judge.begin(channel, self.name, sender)
            params = {"channel": channel, "data": publishing.number}
            self._call("publish", params, self._has_published, publishing)

    def _has_published(self, message: dict[str, Any], publishing: Publishing) -> None:
        if "error" in message:
            self._check_error(message["error"])
        else:
            # its position is not in the reply
            publishing.acknowledged = self._world.now

    def _published(
        self, subscription: Subscription | None, channel: str, publication: dict[str, Any]
    ) -> None:
        if subscription is None or not subscription.active:
            self._judge.fail(f"{self.name} was pushed {publication} of {channel}, and is not in it")
            return
        self._take(subscription, publication)

    def entries(self, channel: str) -> int:
        """Return how often the client was subscribed to a channel."""
        return self.subscriptions[channel].entries if channel else 0

    def is_in(self, channel: str) -> bool:
        """Return whether it is subscribed to a channel; "": whether it is connected."""
        if self.state is not State.CONNECTED or not channel:
            return self.state is State.CONNECTED
        return channel in self.subscriptions and self.subscriptions[channel].active

    @property
    def is_settled(self) -> bool:
        """Whether it is connected, and subscribed to all of its channels."""
        return self.state is State.CONNECTED and all(
            subscription.active for subscription in self.subscriptions.values()
        )

    @property
    def end(self) -> End | None:
        """Its end of the link on which messages come, if there is one."""
        return None if self._wire is None else self._wire.end
