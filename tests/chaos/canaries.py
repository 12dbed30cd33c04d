"""Clients of each form that must receive each publication, in order, whatever others do."""

from __future__ import annotations

import asyncio
import time

from tests.chaos.command import Poster
from tests.chaos.forms import PROBE, Form
from tests.chaos.raw_socket import CLOSE, RawSocket, open_socket
from tests.server import TIMEOUT

CHANNEL = "canary:song"
NAMESPACE = {"name": "canary"}
"""The options of that channel's namespace: it has no joins, so a push without data is a ping."""
INTERVAL = 0.05
"""Seconds between two publications."""


class Canary(RawSocket):
    """A subscriber that keeps what it received."""

    def __init__(self, form: Form) -> None:
        super().__init__(
            form.frame(form.connect("canary")) + form.frame(form.subscribe(2, CHANNEL)), form.query
        )
        self._form = form
        self._replies: dict[int, asyncio.Future[int]] = {
            number: asyncio.get_running_loop().create_future() for number in (1, 2)
        }
        self.received: list[int] = []
        self.end = ""

    async def perch(self) -> None:
        """Wait until it is connected and subscribed."""
        for reply in list(self._replies.values()):
            assert await asyncio.wait_for(reply, TIMEOUT) == 0, "the canary was refused"

    async def probe(self) -> int:
        """Send a command; returns the code of the error in the reply, 0 for none."""
        reply = self._replies[PROBE] = asyncio.get_running_loop().create_future()
        self.send(self._form.frame(self._form.probe(PROBE)))
        return await asyncio.wait_for(reply, TIMEOUT)

    def frame_received(self, opcode: int, data: bytes) -> None:
        if opcode == CLOSE:
            self.end = f"closed: {data!r}"
            return
        for message in self._form.messages(data):
            if message.id:
                self._replies[message.id].set_result(message.error)
            elif message.data is not None:
                self.received.append(message.data)
            else:
                self.send(self._form.frame(self._form.pong()))

    def refused(self, status: str) -> None:
        self.end = status

    def connection_lost(self, error: Exception | None) -> None:
        self.end = self.end or f"lost: {error}"
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(ConnectionError(self.end))

    async def complaints(self, published: int) -> list[str]:
        """Wait for the last publication, and say what is wrong.

        Args:
            published: how many there were.
        """
        name = f"canary, {self._form.name}"
        if self.end:
            return [f"{name}: {self.end}"]
        deadline = time.monotonic() + TIMEOUT
        while published - 1 not in self.received[-1:] and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        found = []
        if self.received != list(range(published)):
            found.append(f"{name}: got {len(self.received)} of {published}, or in another order")
        if code := await self.probe():
            found.append(f"{name}: error {code}")
        return found


async def open_canary(form: Form, port: int) -> Canary:
    """Open a canary; it is subscribed when this returns."""
    canary = await open_socket(Canary(form), port)
    await canary.perch()
    return canary


class Song:
    """Publications to the canaries, numbered from 0, over one connection to the server API."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stops = False
        self._task = asyncio.create_task(self._sing())

    async def _sing(self) -> int:
        poster = await Poster.open(self._port)
        number = 0
        while not (self._stops and number):
            await poster.publish(CHANNEL, number)
            number += 1
            await asyncio.sleep(INTERVAL)
        poster.close()
        return number

    async def stop(self) -> int:
        """End, after one more publication; returns how many there were."""
        self._stops = True
        return await self._task
