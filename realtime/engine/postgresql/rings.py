"""Rings: how nodes learn that something was published, after the commit.

A ring is the payload of a NOTIFY, the time in front, in a transaction of its own: NOTIFY in a
transaction that writes holds a lock of the whole server until that one is on disk. A ring names
channels in which there is news, and brings messages that are small, or that no channel keeps. What
is larger lies in the table `letter` for a minute. Where nodes cannot LISTEN, rings are letters,
too, and nodes poll.

A ring may be lost: nodes look at the tops of their channels, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import random
from base64 import b64encode
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, Struct

from realtime.engine.postgresql.batches import Batches
from realtime.engine.postgresql.database import Database
from realtime.protocol.messages import ChannelName

MAX_BYTES = 7900
"""Bytes of a payload; PostgreSQL takes less than 8000."""
MAX_MESSAGE_BYTES = 4096
"""Bytes of a message that a ring brings."""
FRAME_BYTES = 200
"""Bytes of a ring or a message at most, beside what is in it and the name of the channel."""
JOIN_SECONDS = 0.002
"""Rings are that far apart; what comes meanwhile is in one."""

DIGEST_CHARACTERS = 11
EVERYWHERE = "*"
"""In place of digests: there may be news in every channel."""

MAX_JOINED = 1000
"""Messages that are sent together."""

_NOTIFY = (
    "SELECT pg_notify(%s, {schema}.now_us() || ' ' || payload) FROM unnest(%s::text[]) AS payload"
)
_POST = "SELECT {schema}.post(%s::bytea[])"

_NO_LETTER = "0]]]"
"""The end of a ring whose last message has no letter."""

_numbers = itertools.count()


class Message(Struct, array_like=True, gc=False):
    """A publication or a notice on its way to the nodes. It has a position, or is not kept."""

    channel: ChannelName
    record: Raw
    offset: int = 0
    epoch: str = ""
    letter: int = 0
    """The letter that has the message; `record` is null then."""


class Ring(Struct, array_like=True, gc=False):
    """The payload. PostgreSQL drops one that equals another of its transaction, hence `number`."""

    number: int
    news: str
    """Digests of channels, one after the other; or `EVERYWHERE`."""
    messages: list[Message]


def digest(channel: ChannelName) -> str:
    """Return eight bytes that stand for a channel, as text."""
    name = channel.encode(errors="surrogatepass")
    return b64encode(hashlib.blake2b(name, digest_size=8).digest())[:DIGEST_CHARACTERS].decode()


def digests(news: str) -> list[str]:
    """Return the digests in the news of a ring."""
    starts = range(0, len(news), DIGEST_CHARACTERS)
    return [news[start : start + DIGEST_CHARACTERS] for start in starts]


def rings(messages: Iterable[Message]) -> list[bytes]:
    """Return the rings for messages, of which each brings as much as it may."""
    payloads: list[bytes] = []
    brought: list[bytes] = []
    news: dict[str, None] = {}
    room = MAX_MESSAGE_BYTES
    for message in messages:
        encoded = msgspec.json.encode(message)
        if message.offset and (len(encoded) > room or digest(message.channel) in news):
            news[digest(message.channel)] = None
            continue
        if len(encoded) > room:
            payloads.append(_ring("", brought))
            brought, room = [], MAX_MESSAGE_BYTES
        brought.append(encoded)
        room -= len(encoded)
    text = "".join(news)
    if len(text) > MAX_BYTES - FRAME_BYTES - (MAX_MESSAGE_BYTES - room):
        text = EVERYWHERE
    if brought or text:
        payloads.append(_ring(text, brought))
    return payloads


def _ring(news: str, encoded: Sequence[bytes]) -> bytes:
    return b'[%d,"%b",[%b]]' % (next(_numbers), news.encode(), b",".join(encoded))


async def send_trial(database: Database) -> str:
    """Send a ring without news, and return the end of its payload, which no other ring has."""
    trial = f'[{random.getrandbits(63)},"",[]]'
    await database.fetch(_NOTIFY, database.address.schema, [trial])
    return trial


class Ringer:
    """Sends rings at once."""

    def __init__(self, database: Database, polled: bool = False) -> None:
        """`polled`: nodes do not listen."""
        self._database = database
        self._polled = polled

    async def ring(self, messages: Sequence[Message]) -> None:
        """Send messages to the nodes, in their order.

        Raises:
            EngineUnavailable: those that are not kept may be lost.
        """
        if self._polled:
            await self._database.fetch(_POST, [_ring("", list(map(msgspec.json.encode, messages)))])
            return
        large = [each for each in messages if not each.offset and _is_large(each)]
        if large:
            contents = [bytes(each.record) for each in large]
            letters = [number for (number,) in await self._database.fetch(_POST, contents)]
            for each, letter in zip(large, letters, strict=True):
                each.record, each.letter = Raw(b"null"), letter
        payloads = [payload.decode() for payload in rings(messages)]
        await self._database.fetch(_NOTIFY, self._database.address.schema, payloads)

    def within(self, message: Message) -> dict[str, str]:
        """Return how the transaction of a publication sends its message; see `send` in SQL."""
        ring = _ring("", [msgspec.json.encode(message)]).decode()
        if self._polled:
            return {"letter": ring}
        schema = self._database.address.schema
        if not _is_large(message):
            return {"notify": schema, "ring": ring}
        ring = _ring("", [msgspec.json.encode(Message(message.channel, Raw(b"null")))]).decode()
        record = bytes(message.record).decode()
        return {"notify": schema, "ring": ring.removesuffix(_NO_LETTER), "letter": record}


def _is_large(message: Message) -> bool:
    return len(message.record) + len(message.channel) + FRAME_BYTES > MAX_MESSAGE_BYTES


class LoopRinger(Ringer):
    """Sends rings one at a time, `JOIN_SECONDS` apart. It belongs to an event loop."""

    def __init__(self, database: Database, polled: bool = False) -> None:
        super().__init__(database, polled)
        self._batches: Batches[Message, None] = Batches(self._send, MAX_JOINED, JOIN_SECONDS)

    def soon(self, message: Message) -> asyncio.Future[None]:
        """Send a message. Return a future that is done when it is sent, or that it may be lost."""
        return self._batches.add(message)

    async def ring(self, messages: Sequence[Message]) -> None:
        await asyncio.gather(*map(self.soon, messages))

    async def close(self, timeout: float) -> None:
        """Send what waits; what is not sent in that time is lost."""
        await self._batches.close(timeout)

    async def _send(self, batch: Sequence[Message]) -> Sequence[None]:
        await super().ring(batch)
        return [None] * len(batch)
