"""A session: one client whose requests come and go.

To the client a session is a transport. Requests read from it and write to it. A request that
reads brings a *receiver*, which takes frames until it is full. Between two receivers messages wait
in the client's outbox, which is bounded.

    request ─attach─► session ◄─send─ outbox
    request ─deliver─► incoming frames ─► dispatcher

States, and the fields that tell them:

    IDLE       no receiver, no last frame     Nothing can be sent. `_timeout` runs.
    OPEN       a receiver that takes frames   `ready` is true. `_heartbeat` runs.
    FULL       a receiver that takes no more  Its response is on the way. No timer runs.
    ENDED      a last frame                   Every receiver gets it. `_timeout` runs.
    FORGOTTEN  `forget` was called           The name can be used for a new session.

Events:

                      IDLE         OPEN           FULL         ENDED
    attach            OPEN         OPEN ¹         OPEN         last frame
    frame sent        -            OPEN or FULL   -            -
    hold_frames       -            FULL           -            -
    detach, in order  -            IDLE           IDLE         -
    detach, lost ²    ENDED        ENDED          ENDED        -
    close, closed     ENDED        ENDED          ENDED        -
    timeout (5 s)     ENDED        -              -            FORGOTTEN

    ¹ The new receiver is refused with BUSY. If the peer of the present one has gone: ENDED.
    ² Of any receiver, also of one that was full: frames may be lost, the client must recover.

Invariants:

- At most one receiver takes frames; each frame goes to exactly one. `ready` is true only in OPEN.
- A session ends once, and its last frame never changes.
- A session that ends closes its client; a client that closes ends its session.
- A session belongs to the client that began it: until the session ends, only its requests can read
  from it and write to it. Its name proves nothing. See `owning_client`.

A session decides *when* something is sent; its framing decides what the bytes look like. The
application that serves the requests hands the framing in, so a session knows no wire format.

    outbox ─Frame─► session ─frame of the framing─► response format ─bytes─► server

A response format (`response.ResponseFormat`) says how a frame stands in one kind of HTTP response.
`sockjs.framing` and `sockjs.formats` are an example of both.

See docs/protocol.md, 8, for the timeouts and close codes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Protocol

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.node.hooks import Handshake
from realtime.node.node import Node
from realtime.protocol.frames import Frame
from realtime.transports.emulation.incoming import IncomingFrames
from realtime.transports.emulation.owning_client import ANYONE, Owner, Shown
from realtime.transports.emulation.response import FrameReceiver

SESSION_TIMEOUT = 5.0
"""Seconds a session waits for a receiver, and is remembered after its end."""

CLOSE_TIMEOUT = 1.0
"""Seconds a closing client waits for a receiver of the last frame. Short: the node may stop."""

INTERRUPTED = 1002, "Connection interrupted"
BUSY = 2010, "Another connection still open"
ABANDONED = 3000, "Go away!"
"""Close codes and reasons."""


@dataclass(frozen=True)
class Framing:
    """What a session writes. Each member is one frame, or makes one."""

    transport: str
    """Name of the transport of its clients, see `outbox.Transport.name`. It names the sessions in
    claims and relay messages, too, so that nodes of all versions must use it."""
    open: bytes
    """The first frame of a session; b"" for none."""
    heartbeat: bytes
    """The frame for a quiet stream, or for a polling response that must end; b"" for none."""
    messages: Callable[[Frame], bytes]
    """Return the frame that carries messages of the protocol. See `Frame.form`."""
    close: Callable[[int, str], bytes]
    """Return the last frame of a session, of its close code and reason."""


class NotOwnerError(Exception):
    """A request is not of the client that the session belongs to."""


class AnySession(Protocol):
    """A session of this node, or of another one, with a receiver attached to it."""

    def detach(self, receiver: FrameReceiver, *, interrupted: bool) -> None:
        """Take a receiver off. `interrupted`: frames that it took may not have been sent."""

    async def deliver(self, frames: Sequence[bytes]) -> bool:
        """Take frames that the client sent.

        Returns:
            Whether the session took them; False after its end.
        """


@dataclass(eq=False, repr=False)
class EmulatedSession:
    """A session of this node. See `outbox.Transport` and `AnySession`."""

    session = ""
    ends_with_push = False

    _node: InitVar[Node]
    _framing: Framing
    _handshake: InitVar[Handshake]
    _: KW_ONLY
    ended: Callable[[], None]
    """Called when the session ends."""
    forget: Callable[[], None]
    """Called when requests need not find the session any more."""
    owner: Owner = ANYONE
    """Whom the session belongs to."""
    ready: bool = False
    _receiver: FrameReceiver | None = None
    """The receiver that takes the next frame, or that took the last one."""
    _receivers: set[FrameReceiver] = field(default_factory=set)
    """All that are attached: besides it, full ones whose responses are on their way."""
    _has_opened: bool = False
    """Whether the open frame was written."""
    _last: bytes | None = None
    """The last frame, once the session has ended."""
    _last_written: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self, node: Node, handshake: Handshake) -> None:
        self.name = self._framing.transport
        self._timers = node.timers
        self._form = self._framing.messages
        delay = node.config.sockjs_heartbeat_delay
        self._heartbeat_delay = delay if self._framing.heartbeat else 0
        self._heartbeat = node.timers.timer(self._beat)
        self._timeout = node.timers.timer(self._timed_out)
        self._timeout.set(self._timers.now() + SESSION_TIMEOUT)
        self._client: Client | None = Client(node, self, node.codecs.json, handshake)
        self._incoming = IncomingFrames(Dispatcher(self._client), node.spawn)

    # for requests

    def is_of(self, request: Shown) -> bool:
        """Return whether a request may use the session: it is of its client, or it has ended."""
        return self._last is not None or self.owner.sent(request)

    async def attach(self, receiver: FrameReceiver) -> None:
        """Write to a receiver from now on, unless it ends before that.

        It gets at least one frame, sooner or later.
        """
        while self._last is None and (present := self._receiver) and not present.finishing:
            is_there = await present.is_there()
            if receiver.finishing:
                return  # its response has ended meanwhile, so nothing would detach it
            if is_there:
                receiver.write(self._framing.close(*BUSY))
                receiver.finish()
                return
            self.detach(present, interrupted=True)
        if self._last is not None:
            self._write_last(receiver, self._last)
            return
        self._receiver = receiver
        self._receivers.add(receiver)
        self._timeout.set(None)
        if not self._has_opened:
            self._has_opened = True
            if self._framing.open:
                self._write(self._framing.open)
        self._set_ready()

    def hold_frames(self, receiver: FrameReceiver) -> None:
        """Write no more to a receiver that ends by itself: what comes waits for the next one."""
        if receiver is self._receiver:
            self.ready = False
            self._heartbeat.set(None)

    def detach(self, receiver: FrameReceiver, *, interrupted: bool) -> None:
        if receiver not in self._receivers:
            return
        self._receivers.remove(receiver)
        if receiver is self._receiver:
            self._receiver = None
            self.ready = False
            self._heartbeat.set(None)
            if self._last is None:
                self._timeout.set(self._timers.now() + SESSION_TIMEOUT)
        if interrupted:
            self.closed()

    async def deliver(self, frames: Sequence[bytes]) -> bool:
        return await self._incoming.take(frames)

    # for the client

    @property
    def backlog(self) -> int:
        return 0

    def send(self, frame: Frame) -> int:
        self._write(frame.form(self._form))
        return 0

    async def close(self, code: int, reason: str) -> None:
        self._end(self._framing.close(code, reason))
        # a client that polls is between two requests most of the time
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._last_written.wait()

    def closed(self) -> None:
        """End the session: it is not known what the client has read."""
        self._end(self._framing.close(*INTERRUPTED))

    # frames

    def _write(self, frame: bytes) -> None:
        assert self._receiver is not None
        self._receiver.write(frame)
        if self._receiver.finishing:
            self.hold_frames(self._receiver)
        elif self._heartbeat_delay > 0:
            self._heartbeat.set(self._timers.now() + self._heartbeat_delay)

    def _set_ready(self) -> None:
        if self._receiver is None or self._receiver.finishing:
            return
        self.ready = True
        if self._heartbeat_delay > 0:
            self._heartbeat.set(self._timers.now() + self._heartbeat_delay)
        if self._client is not None:
            self._client.outbox.ready()

    def _beat(self) -> None:
        if self._receiver is not None and not self._receiver.finishing:
            self._write(self._framing.heartbeat)

    # the end

    def _end(self, last: bytes) -> None:
        if self._last is not None:
            return
        self._last = last
        self.ready = False
        self._incoming.close()
        self._heartbeat.cancel()
        if self._receiver is not None and not self._receiver.finishing:
            self._write_last(self._receiver, last)
        self._timeout.set(self._timers.now() + SESSION_TIMEOUT)
        if self._client is not None:
            self._client.close(None)  # without effect if the client closes the session
        self.ended()

    def _write_last(self, receiver: FrameReceiver, last: bytes) -> None:
        receiver.write(last)
        receiver.finish()
        self._last_written.set()

    def _timed_out(self) -> None:
        if self._last is None:
            self._end(self._framing.close(*ABANDONED))
        self._timeout.cancel()
        self._client = None
        self.forget()
