"""A SockJS session: one client whose requests come and go.

To the client it is a transport, to requests it is what they read from and write to. Between
two requests what is to be sent waits in the client's outbox, which is bounded.

    request ─attach─► session ◄─send─ outbox
    request ─deliver─►   │
                         └─► dispatcher.receive

A session ends when the service or the client closes it; when a response breaks off, because
nobody knows what of it was read, so the client has to recover; and when no request is there to
read for a while. For a while after that it repeats its last frame to whoever asks.

Spec: beyond it; SockJS protocol 0.3.4 and Centrifugo 2.8.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.errors import Disconnect
from realtime.node.hooks import Handshake
from realtime.node.node import Node
from realtime.protocol.frames import Frame
from realtime.transports.emulation.response import Receiver
from realtime.transports.sockjs import framing

PATIENCE = 5.0
"""Seconds a session waits for a request that reads, and is known after its end."""

CLOSE_PATIENCE = 1.0
"""Seconds the end of a client waits for a request that reads it: a node may be about to end."""

WAITING_BYTES = 64 * 1024
"""Bytes a client may have sent that are not handled; a request that sends more waits, and
those that come meanwhile are not taken before."""

INTERRUPTED = framing.close(1002, "Connection interrupted")
BUSY = framing.close(2010, "Another connection still open")
ABANDONED = framing.close(3000, "Go away!")


class AnySession(Protocol):
    """A session of this node, or of another one, with a receiver attached to it."""

    def detach(self, receiver: Receiver, *, interrupted: bool) -> None:
        """A receiver takes no more. `interrupted`: it may not have sent all it took."""
        ...

    async def deliver(self, frames: Sequence[bytes]) -> bool:
        """Take frames the client sent; whether there is still a session that takes them."""
        ...


class Session:
    """A session of this node. See `outbox.Transport` and `AnySession`."""

    name = "sockjs"

    def __init__(
        self,
        node: Node,
        handshake: Handshake,
        forget: Callable[[], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`ended`: called when it ends; `forget`: once nobody needs to know it any more."""
        self._node = node
        self._forget = forget
        self._ended = ended
        self._receiver: Receiver | None = None
        """Takes the next frame."""
        self._receivers: set[Receiver] = set()
        """Besides it, those that are full and on their way."""
        self._is_open = False
        """Whether the client was told that the session is open."""
        self._last: bytes | None = None
        """The frame with which the session ended."""
        self._told = asyncio.Event()
        """Whether somebody was given that frame."""
        self._incoming: deque[bytes] = deque()
        self._incoming_bytes = 0
        self._handling = False
        self._drained = asyncio.Event()
        self._taking = asyncio.Lock()
        """Held by the request that sends."""
        self._heartbeat_delay = node.config.sockjs_heartbeat_delay
        self._heartbeat = node.timers.timer(self._beat)
        self._patience = node.timers.timer(self._lose_patience)
        self.ready = False
        client = Client(node, self, node.codecs.json, handshake)
        self._dispatcher: Dispatcher | None = Dispatcher(client)

    # for requests

    async def attach(self, receiver: Receiver) -> None:
        """Have a receiver take the session's frames. It gets one at least."""
        while self._last is None and (earlier := self._receiver) and not earlier.finishing:
            if await earlier.is_there():
                receiver.write(BUSY)
                receiver.finish()
                return
            self.detach(earlier, interrupted=True)
        if self._last is not None:
            self._say_last(receiver, self._last)
            return
        self._receiver = receiver
        self._receivers.add(receiver)
        self._patience.set(None)
        if not self._is_open:
            self._is_open = True
            self._write(framing.OPEN)
        self._set_ready()

    def detach(self, receiver: Receiver, *, interrupted: bool) -> None:
        if receiver not in self._receivers:
            return
        self._receivers.remove(receiver)
        if receiver is self._receiver:
            self._receiver = None
            self.ready = False
            self._heartbeat.set(None)
            if self._last is None:
                self._patience.set(self._node.timers.now() + PATIENCE)
        if interrupted:
            self.closed()

    async def deliver(self, frames: Sequence[bytes]) -> bool:
        async with self._taking:
            await self._room()  # the request before this one may have been given up
            if self._last is not None:
                return False
            self._incoming.extend(frames)
            self._incoming_bytes += sum(map(len, frames))
            if not self._handling and self._incoming:
                self._handling = True
                self._node.spawn(self._handle())
            await self._room()
            return True

    async def _room(self) -> None:
        """Wait until what came is handled, but for what may wait."""
        while self._incoming_bytes > WAITING_BYTES and self._last is None:
            self._drained.clear()
            await self._drained.wait()

    async def _handle(self) -> None:
        """Hand over what came, in its order."""
        try:
            while self._incoming:
                dispatcher = self._dispatcher
                if dispatcher is None or dispatcher.client.is_closing():
                    return  # nothing of it reaches anybody any more
                frame = self._incoming.popleft()
                await dispatcher.receive(frame)
                self._incoming_bytes -= len(frame)
                if self._incoming_bytes <= WAITING_BYTES:
                    self._drained.set()
        finally:
            self._incoming.clear()
            self._incoming_bytes = 0
            self._handling = False
            self._drained.set()

    # for the client

    def send(self, frame: Frame) -> int:
        self._write(frame.form(framing.replies))
        return 0

    async def close(self, disconnect: Disconnect) -> None:
        self._end(framing.close(disconnect.code, disconnect.advice))
        # a client that polls is between two requests most of the time
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_PATIENCE):
                await self._told.wait()

    def closed(self) -> None:
        """End the session: it is not known what the client has read."""
        self._end(INTERRUPTED)

    # frames

    def _write(self, frame: bytes) -> None:
        assert self._receiver is not None
        self._receiver.write(frame)
        if self._receiver.finishing:
            self.ready = False
            self._heartbeat.set(None)
        elif self._heartbeat_delay > 0:
            self._heartbeat.set(self._node.timers.now() + self._heartbeat_delay)

    def _set_ready(self) -> None:
        """Send what waits, if there is somebody to read it."""
        if self._receiver is None or self._receiver.finishing:
            return
        self.ready = True
        if self._heartbeat_delay > 0:
            self._heartbeat.set(self._node.timers.now() + self._heartbeat_delay)
        if self._dispatcher is not None:
            self._dispatcher.client.outbox.ready()

    def _beat(self) -> None:
        if self._receiver is not None and not self._receiver.finishing:
            self._write(framing.HEARTBEAT)

    # the end

    def _end(self, frame: bytes) -> None:
        """Say the last frame, and go on saying it for a while."""
        if self._last is not None:
            return
        self._last = frame
        self.ready = False
        self._drained.set()
        self._heartbeat.cancel()
        if self._receiver is not None and not self._receiver.finishing:
            self._say_last(self._receiver, frame)
        self._patience.set(self._node.timers.now() + PATIENCE)
        if self._dispatcher is not None:
            self._dispatcher.client.close(None)  # nothing happens where it is what closes
        self._ended()

    def _say_last(self, receiver: Receiver, frame: bytes) -> None:
        receiver.write(frame)
        receiver.finish()
        self._told.set()

    def _lose_patience(self) -> None:
        if self._last is None:
            self._end(ABANDONED)
        self._patience.cancel()
        self._dispatcher = None
        self._forget()
