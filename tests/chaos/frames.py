"""Malformed frames, live: hundreds of thousands go to a real server while canaries sing.

    python -m tests.chaos.frames 500000 [--server daphne|uvicorn|realtime] [--seed 15]

The number is that of frames of each generation; half are JSON, half Protobuf. One in five is the
first of its connection, and the others come after a connect. Behind each goes a good command:
either that is answered, or the connection closes as documented. A canary for each generation and
format must receive each publication, in order. Prints a report, and fails when a frame had another
end, a canary missed something, or the log of the server shows an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from realtime.errors import ERRORS, InternalError
from realtime.protocol.negotiation import generation_of
from tests.chaos.canaries import NAMESPACE, Song, open_canary
from tests.chaos.command import serving
from tests.chaos.forms import FORMS, PROBE, Form, Message
from tests.chaos.raw_socket import BINARY, CLOSE, RawSocket, frame, open_socket
from tests.damaged_frames import (
    JSON_PIECES,
    JSON_SEEDS,
    PROTOBUF_PIECES,
    PROTOBUF_SEEDS,
    damaged,
)
from tests.server import Server

OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "presence": True,
    "join_leave": True,
    "publish": True,
    "history_size": 5,
    "history_lifetime": 600,
    "history_recover": True,
    "namespaces": [NAMESPACE],
}
QUIET = {
    "daphne": ("--access-log", "/dev/null"),
    "uvicorn": ("--no-access-log",),
    "realtime": (),
}
"""Arguments that leave requests out of the log."""

BAD_REQUEST_AND_INVALID_TOKEN = {
    1: {
        (3003, '{"reason":"bad request","reconnect":false}'),
        (3002, '{"reason":"invalid token","reconnect":false}'),
    },
    2: {(3501, "bad request"), (3500, "invalid token")},
}
"""Generation → how a malformed frame may close its connection."""
REFUSALS = {error.code for error in ERRORS} - {InternalError.code}
"""Codes of the errors that a client can bring about."""

VISITORS = 16
"""Connections at a time of each form."""
TOGETHER = 4
"""Frames that are sent without waiting for the answers to those before."""
FRAMES_OF_A_CONNECTION = 40
FIRST = 0.2
"""The share of frames that are the first of a connection."""
GARBAGE = b"\xff\x00"
PATIENCE = 60.0
_TROUBLE = re.compile("Traceback|[Uu]nhandled|never retrieved|CRITICAL|ERROR")


class Visit(RawSocket):
    """A connection that sends frames; `told` is set when something came."""

    def __init__(self, form: Form) -> None:
        super().__init__(query=form.query)
        self._form = form
        self.told = asyncio.Event()
        self.messages: list[Message] = []
        self.close: tuple[int, str] | None = None
        self.fault = ""
        self.lost = asyncio.get_running_loop().create_future()

    def frame_received(self, opcode: int, data: bytes) -> None:
        if opcode == CLOSE:
            self.close = (int.from_bytes(data[:2], "big"), data[2:].decode())
            self.transport.write(frame(data, CLOSE))
        else:
            try:
                self.messages += self._form.messages(data)
            except ValueError as error:
                self.fault = f"unreadable: {error!r} in {data!r}"
        self.told.set()

    def refused(self, status: str) -> None:
        self.fault = status
        self.told.set()

    def connection_lost(self, error: Exception | None) -> None:
        if self.close is None and not self.fault:
            self.fault = f"cut off: {error}"
        self.told.set()
        if not self.lost.done():
            self.lost.set_result(None)

    @property
    def is_over(self) -> bool:
        return self.close is not None or bool(self.fault)

    async def news(self) -> None:
        """Wait until something comes."""
        self.told.clear()
        try:
            await asyncio.wait_for(self.told.wait(), PATIENCE)
        except TimeoutError:
            self.fault = f"silent for {PATIENCE:g} s"

    async def leave(self, *, roughly: bool) -> None:
        """End the connection: with RST, or, after a close frame, wait for the server to do it."""
        if not self.transport.is_closing() and (roughly or self.close is None):
            self.transport.get_extra_info("socket").setsockopt(
                SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0)
            )
            self.transport.abort()
        await asyncio.wait_for(self.lost, PATIENCE)


class Attack:
    """All frames of one form: how they end is counted in `ends`; `faults` has what must not be."""

    def __init__(self, form: Form, port: int, count: int, seed: int) -> None:
        self.form = form
        self._port = port
        self._chance = random.Random(f"{seed} {form.name}")
        seeds = (PROTOBUF_SEEDS if form.is_binary else JSON_SEEDS)[form.generation]
        pieces = PROTOBUF_PIECES if form.is_binary else JSON_PIECES
        self._frames = damaged(seeds, pieces, count, self._chance)
        self._returned: list[bytes] = []
        """Frames behind one that closed their connection: the server did not read them."""
        self.ends: Counter[str] = Counter()
        self.faults: list[str] = []

    def _remaining(self) -> Iterator[bytes]:
        while True:
            if self._returned:
                yield self._returned.pop()
            elif (new := next(self._frames, None)) is not None:
                yield new
            else:
                return

    async def run(self) -> None:
        """Send all frames."""
        await asyncio.gather(*(self._visitor() for _ in range(VISITORS)))

    async def _visitor(self) -> None:
        for one in self._remaining():
            is_first = self._chance.random() < FIRST
            visit = await open_socket(Visit(self.form), self._port)
            if is_first:
                await self._first(visit, one)
            else:
                visit.send(self.form.frame(self.form.connect("visitor")))
                await self._later(visit, one)
            try:
                await visit.leave(roughly=self._chance.random() < 0.5)
            except TimeoutError:
                self.faults.append(f"not closed by the server: {visit.close}")

    def _damaged(self, data: bytes) -> bytes:
        """Return a frame that the WebSocket lets through: what is not UTF-8 goes as binary."""
        try:
            data.decode()
        except UnicodeDecodeError:
            return frame(data, BINARY)
        return self.form.frame(data)

    async def _first(self, visit: Visit, one: bytes) -> None:
        """Send a frame in place of a connect, and what ends the connection in any case."""
        visit.send(self._damaged(one), frame(GARBAGE, BINARY))
        while not visit.messages and not visit.is_over:
            await visit.news()
        if visit.messages and not visit.is_over and visit.messages[0].error not in REFUSALS:
            visit.fault = f"answered {visit.messages[0]}"
        self._count(visit, one, generation_of(one, self.form.is_binary))

    async def _later(self, visit: Visit, one: bytes) -> None:
        """Send frames after the connect until one of them closes the connection."""
        number, waiting = 0, [one]
        while waiting and not visit.is_over:
            probes = {PROBE + number + n: each for n, each in enumerate(waiting)}
            number += len(probes)
            for probe, each in probes.items():
                visit.send(self._damaged(each), self.form.frame(self.form.probe(probe)))
            while probes and not visit.is_over:
                await visit.news()
                for message in visit.messages:
                    if message.id in probes:
                        self.ends["answered"] += 1
                        del probes[message.id]
                    elif message.error and message.error not in REFUSALS:
                        self.faults.append(f"{message} to one of {list(probes.values())}")
                visit.messages.clear()
            if probes:
                guilty, *unread = probes.values()
                self._returned += unread
                self._count(visit, guilty, self.form.generation)
            waiting = []
            if number < FRAMES_OF_A_CONNECTION and not visit.is_over:
                waiting = [
                    each for _, each in zip(range(TOGETHER), self._remaining(), strict=False)
                ]

    def _count(self, visit: Visit, one: bytes, generation: int) -> None:
        if visit.fault or (
            visit.close is not None and visit.close not in BAD_REQUEST_AND_INVALID_TOKEN[generation]
        ):
            self.faults.append(f"{self.form.name}: {one!r}: {visit.fault or visit.close}")
        self.ends[str(visit.close[0]) if visit.close else "refused"] += 1


def private_memory(pid: int) -> int:
    """Return the KiB of memory that belong to a process alone."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(kib) for kib in re.findall(r"^Private_\w+: +(\d+) kB", rollup, re.MULTILINE))


async def attack(server: Server, count: int, seed: int) -> tuple[list[Attack], float]:
    """Send `count` frames of each generation; returns the attacks and their seconds."""
    attacks = [Attack(form, server.port, count // 2, seed) for form in FORMS]
    begun = time.monotonic()
    await asyncio.gather(*(each.run() for each in attacks))
    return attacks, time.monotonic() - begun


def num_clients(server: Server) -> int:
    number: int = server.api("info")["result"]["nodes"][0]["num_clients"]
    return number


async def only_canaries(server: Server) -> None:
    """Wait until all other clients are gone."""
    deadline = time.monotonic() + PATIENCE
    while (number := await asyncio.to_thread(num_clients, server)) > len(FORMS):
        assert time.monotonic() < deadline, f"{number - len(FORMS)} clients stay"
        await asyncio.sleep(0.1)


async def play(server: Server, count: int, seed: int) -> dict[str, Any]:
    """Attack a server among canaries; returns the report. Its `faults` must be empty."""
    canaries = [await open_canary(form, server.port) for form in FORMS]
    song = Song(server.port)
    await attack(server, count // 10, seed + 1)  # what a server makes once and keeps
    await only_canaries(server)
    before = private_memory(server.pid)
    attacks, seconds = await attack(server, count, seed)
    await only_canaries(server)
    after = private_memory(server.pid)
    published = await song.stop()
    faults = [fault for each in attacks for fault in each.faults]
    faults += [fault for canary in canaries for fault in await canary.complaints(published)]
    faults += [line for line in server.log.splitlines() if _TROUBLE.search(line)]
    return {
        "frames": sum(each.ends.total() for each in attacks),
        "ends": {each.form.name: dict(each.ends) for each in attacks},
        "seconds": round(seconds, 1),
        "publications": published,
        "memory_kib": [before, after],
        "faults": faults,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--server", default="daphne", choices=QUIET)
    parser.add_argument("--seed", type=int, default=15)
    arguments = parser.parse_args()
    with serving(OPTIONS, arguments.server, arguments=QUIET[arguments.server]) as [server]:
        report = asyncio.run(play(server, arguments.count, arguments.seed))
    number = len(report["faults"])
    report["faults"] = report["faults"][:20]
    sys.stdout.write(json.dumps({"server": arguments.server, **report}, indent=1) + "\n")
    if number:
        sys.exit(f"{number} faults")


if __name__ == "__main__":
    main()
