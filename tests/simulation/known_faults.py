"""Faults that this service had, or nearly had: with each of them, some seeds must fail.

Each puts the mistake back into the product, for the length of a block;
`python -m tests.simulation --fault NAME` runs seeds until one fails.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, NamedTuple
from unittest import mock

from msgspec.structs import replace

from realtime.clients.session import ClientSession
from realtime.clients.subscriptions import ClientSubscriptions
from realtime.engine.base import Outgoing
from realtime.engine.postgresql.database import Address, BlockingDatabase, LoopDatabase
from realtime.engine.postgresql.rings import Ringer
from realtime.engine.postgresql.streams import PostgreSQLStreams
from realtime.engine.redis.broker import RedisStreams
from realtime.engine.redis.redis_bus import RedisBus
from realtime.errors import EngineUnavailable, NoReply
from realtime.node.control import ControlHandler
from realtime.node.feed import ChannelFeed
from realtime.node.outbox import ClientOutbox
from realtime.pending.models import Pending
from realtime.pending.publications import publication_of
from realtime.pending.relay import RelayThread
from realtime.protocol.messages import Publication, StreamPosition
from realtime.redis.connection import Connection
from realtime.redis.pool import BlockingPool
from realtime.streams import recovery
from realtime.streams.follower import StreamFollower
from realtime.streams.order import StreamOrder
from realtime.streams.recovery import Recovered
from realtime.transports.emulation.incoming import IncomingFrames
from realtime.transports.emulation.owning_node import CLAIM_RENEWAL, Claims
from realtime.transports.emulation.relay_messages import RelayLink
from tests.simulation import map_faults
from tests.simulation.plan import MEMORY, ONE, POSTGRESQL, SENTINEL
from tests.simulation.postgresql_database import Transaction


class KnownFault(NamedTuple):
    """One of them."""

    engine: str
    """Where it shows; "": everywhere."""
    put_back: Callable[[], AbstractContextManager[Any]]
    relays: bool | None = None
    """Whether it shows where there are relays; None: anywhere."""


async def _nothing(*_: object) -> None:
    pass


def _unsealed() -> AbstractContextManager[Any]:
    return mock.patch.object(RedisBus, "_seal", _nothing)


@contextmanager
def _pushed_early() -> Iterator[None]:
    """Held clients are pushed what is kept back for them, before they have their reply."""
    kept_back = ChannelFeed.publish_followed

    def publish(feed: ChannelFeed, publication: Publication) -> None:
        for client in feed._held:
            client.push(client.codec.publication(feed.channel, publication))
        kept_back(feed, publication)

    with mock.patch.object(ChannelFeed, "publish_followed", publish):
        yield


@contextmanager
def _repeated_at_once() -> Iterator[None]:
    """A script that Redis forgot is sent again without waiting for those behind it."""
    in_order = Connection._repeat

    async def repeat(connection: Connection, send: Any, key: Any) -> Any:
        link = connection._link
        if link is None or link.lost is not None:
            return await in_order(connection, send, key)
        return send(link)

    with mock.patch.object(Connection, "_repeat", repeat):
        yield


@contextmanager
def _subscribed_while_leaving() -> Iterator[None]:
    """A client is told that it was unsubscribed before it has left, and may subscribe again."""

    async def end(subscriptions: ClientSubscriptions, channel: str, why: Any) -> None:
        if not subscriptions._session.closing:
            push = subscriptions._client.codec.unsubscribe(channel, *why)
            subscriptions._client.push(push)
        await subscriptions._leave_safely(channel)

    check = ClientSession.check_subscribe

    def may_subscribe(session: ClientSession, channel: str, *rest: Any) -> Any:
        old = session.subscriptions.get(channel)
        if old is None or not old.ending:
            return check(session, channel, *rest)
        del session.subscriptions[channel]
        try:
            return check(session, channel, *rest)
        finally:
            session.subscriptions[channel] = old

    with (
        mock.patch.object(ClientSubscriptions, "_end", end),
        mock.patch.object(ClientSession, "check_subscribe", may_subscribe),
    ):
        yield


@contextmanager
def _gaps_ignored() -> Iterator[None]:
    """A publication that comes too early is delivered, as if nothing was missing."""
    in_order = StreamOrder.receive

    def receive(
        order: StreamOrder, publication: Publication, position: StreamPosition
    ) -> list[Publication]:
        last = order.position
        if last is None or position.epoch != last.epoch or position.offset <= last.offset:
            return in_order(order, publication, position)
        order.position = position
        return [publication]

    with mock.patch.object(StreamOrder, "receive", receive):
        yield


def _lost_while_reading() -> AbstractContextManager[Any]:
    """What arrives while history is read counts as seen, and is not in the reply."""

    def merge(answer: Recovered, held: Any) -> Recovered:
        offset = max([answer.position.offset, *(each.offset for each in held)])
        position = StreamPosition(offset, answer.position.epoch)
        return answer._replace(position=position)

    return mock.patch.object(recovery, "merge", merge)


@contextmanager
def _epoch_ignored() -> Iterator[None]:
    """A client recovers by its offset alone."""
    recover = recovery.recover

    def by_offset(stream: Any, since: StreamPosition, **options: Any) -> Recovered:
        return recover(stream, StreamPosition(since.offset, stream.position.epoch), **options)

    with mock.patch.object(recovery, "recover", by_offset):
        yield


@contextmanager
def _keys_ignored() -> Iterator[None]:
    """A publication that is tried again is published again."""
    request = RedisStreams._request

    def without_key(streams: RedisStreams, outgoing: Outgoing, *rest: Any, **options: Any) -> Any:
        if outgoing.options.keeps_history:
            outgoing = replace(outgoing, once=None)
        return request(streams, outgoing, *rest, **options)

    with mock.patch.object(RedisStreams, "_request", without_key):
        yield


def _replies_left_unread() -> AbstractContextManager[Any]:
    """A connection whose reply was not read is used again."""
    drop = BlockingPool.drop

    def keep(pool: BlockingPool, connection: Any) -> None:
        if connection is None or not connection.is_connected:
            drop(pool, connection)
        else:
            pool.keep(connection)

    stack = ExitStack()
    stack.enter_context(mock.patch.object(BlockingPool, "drop", keep))
    stack.enter_context(mock.patch("realtime.redis.blocking.BlockingRedis._replace", _ignore))
    stack.enter_context(mock.patch("realtime.redis.pool._is_ready", return_value=True))
    return stack


def _ignore(*_: object) -> None:
    pass


def _not_caught_up() -> AbstractContextManager[Any]:
    """Nothing is read when pub/sub is back after a loss."""

    async def resume(follower: StreamFollower, interruption: int) -> None:
        if follower._interruption is not None:
            follower._interruption.set_result(None)
            follower._interruption = None

    return mock.patch.object(StreamFollower, "resume", resume)


def _never_slow() -> AbstractContextManager[Any]:
    """A client that reads nothing stays, and what waits for it grows."""
    return mock.patch.object(ClientOutbox, "_overrun", _ignore)


@contextmanager
def _applied_late() -> Iterator[None]:
    """A call of the server API returns before its node has done what it asks for."""

    async def apply(handler: ControlHandler, message: Any) -> None:
        if (rest := handler._begin(message)) is not None:
            handler._context.spawn(rest)

    with mock.patch.object(ControlHandler, "apply", apply):
        yield


@contextmanager
def _relayed_again() -> Iterator[None]:
    """Frames for a session of another node are sent again if it does not answer soon."""
    deliver = RelayLink.deliver

    async def again(link: RelayLink, *question: Any) -> bool:
        try:
            async with asyncio.timeout(0.05):
                return await deliver(link, *question)
        except TimeoutError:
            return await deliver(link, *question)

    with mock.patch.object(RelayLink, "deliver", again):
        yield


@contextmanager
def _claims_ignored() -> Iterator[None]:
    """A node begins a session although another one has claimed it."""

    async def claim(claims: Claims, session: str) -> str:
        return claims._node.uid

    with mock.patch.object(Claims, "claim", claim):
        yield


@contextmanager
def _newest_first() -> Iterator[None]:
    """Frames that wait for the one before them are handled in the wrong order."""
    handle = IncomingFrames._handle

    async def reversed_(incoming: IncomingFrames) -> None:
        incoming._frames = _Stack(incoming._frames)
        await handle(incoming)

    with mock.patch.object(IncomingFrames, "_handle", reversed_):
        yield


class _Stack(deque[bytes]):
    def popleft(self) -> bytes:
        return self.pop()


@contextmanager
def _deleted_early() -> Iterator[None]:
    """A relay deletes rows, and publishes them then."""
    check = RelayThread._check

    def delete_first(relay: RelayThread, rows: Sequence[Pending], lifetime: int) -> Any:
        Pending.objects.filter(pk__in=[row.pk for row in rows]).delete()
        return check(relay, rows, lifetime)

    with mock.patch.object(RelayThread, "_check", delete_first):
        yield


def _rows_without_keys() -> AbstractContextManager[Any]:
    """A row that is repeated is published again."""

    def without_key(row: Pending, lifetime: int) -> Any:
        return replace(publication_of(row, lifetime), once=None)

    return mock.patch("realtime.pending.relay.publication_of", without_key)


def _rows_overtaken() -> AbstractContextManager[Any]:
    """Rows behind one that Redis refuses are published in the same round trip."""
    return mock.patch("realtime.pending.relay.replace", lambda new, after: new)


@contextmanager
def _statements_repeated() -> Iterator[None]:
    """A statement of which no reply came is sent again, though it may have been carried out."""
    fetch = LoopDatabase.fetch

    async def again(database: LoopDatabase, query: str, *arguments: Any) -> Any:
        try:
            return await fetch(database, query, *arguments)
        except NoReply:
            return await fetch(database, query, *arguments)

    with mock.patch.object(LoopDatabase, "fetch", again):
        yield


@contextmanager
def _keys_forgotten() -> Iterator[None]:
    """The key of a publication is not in the transaction that keeps it, and lost."""
    keep = PostgreSQLStreams._keep

    async def without_keys(streams: PostgreSQLStreams, publications: Sequence[Outgoing]) -> Any:
        kept = [each for each in publications if each.options.keeps_history]
        if len(kept) < len(publications):
            return await keep(streams, publications)
        return await keep(streams, [replace(each, once=None) for each in kept])

    with mock.patch.object(PostgreSQLStreams, "_keep", without_keys):
        yield


def _keys_used_early() -> AbstractContextManager[Any]:
    """The key of a publication without history is used in a transaction before its ring."""
    stack = ExitStack()
    for room in ("streams", "broker"):
        name = f"realtime.engine.postgresql.{room}.is_sent_within"
        stack.enter_context(mock.patch(name, return_value=False))
    stack.enter_context(mock.patch.object(Ringer, "within", return_value={}))
    return stack


def _epoch_kept() -> AbstractContextManager[Any]:
    """A stream goes on in its epoch at a replica that may lack publications."""
    return mock.patch.object(Transaction, "timeline", "")


def _published_apart() -> AbstractContextManager[Any]:
    """A row without a key is published in another transaction than the one that deletes it."""

    def own(address: Address, alias: str) -> BlockingDatabase:
        return BlockingDatabase(address)

    return mock.patch("realtime.pending.within._SiteDatabase", own)


@contextmanager
def _renewed_late() -> Iterator[None]:
    """A renewal that was overtaken by the release of its claim is left alone."""

    async def renew(claims: Claims, session: str) -> None:
        with suppress(EngineUnavailable):
            await claims.claim(session)
        if (timer := claims._renewals.get(session)) is not None:
            timer.set(claims._node.timers.now() + CLAIM_RENEWAL)

    with mock.patch.object(Claims, "_renew", renew):
        yield


KNOWN_FAULTS: Mapping[str, KnownFault] = {
    "a row is deleted before it is published": KnownFault("", _deleted_early, True),
    "a row has no key of its own": KnownFault("", _rows_without_keys, True),
    "rows overtake one that Redis refuses": KnownFault("", _rows_overtaken, True),
    "acknowledged publications are lost in a planned failover": KnownFault(SENTINEL, _unsealed),
    "pushes come before the reply": KnownFault("", _pushed_early),
    "publications overtake each other after NOSCRIPT": KnownFault(ONE, _repeated_at_once),
    "a subscribe during an unsubscribe of the server is undone": KnownFault(
        ONE, _subscribed_while_leaving
    ),
    "gaps are ignored": KnownFault(ONE, _gaps_ignored),
    "publications during a read of history are lost": KnownFault("", _lost_while_reading),
    "a client recovers in another epoch": KnownFault("", _epoch_ignored),
    "a repeated publication is published twice": KnownFault(ONE, _keys_ignored),
    "a reply is taken for that of another command": KnownFault(ONE, _replies_left_unread),
    "nothing is made up for after a loss of pub/sub": KnownFault(ONE, _not_caught_up),
    "a client that reads nothing is never closed": KnownFault("", _never_slow),
    "an unsubscribe is acknowledged before it is done": KnownFault(MEMORY, _applied_late),
    "frames are relayed to their session twice": KnownFault(ONE, _relayed_again),
    "a session has two owners": KnownFault(ONE, _claims_ignored),
    "frames of a session change places": KnownFault("", _newest_first),
    "a statement without a reply is sent again": KnownFault(POSTGRESQL, _statements_repeated),
    "a key is not in the transaction of its publication": KnownFault(POSTGRESQL, _keys_forgotten),
    "a key is used before its ring": KnownFault(POSTGRESQL, _keys_used_early, True),
    "a promotion keeps the epochs": KnownFault(POSTGRESQL, _epoch_kept),
    "a row is published apart without a key": KnownFault(POSTGRESQL, _published_apart, True),
    "an expiry removes a later put": KnownFault(ONE, map_faults.expiry_in_any_case),
    "a map has the position of its last page": KnownFault(ONE, map_faults.late_position),
    "a late renewal leaves a claim": KnownFault(POSTGRESQL, _renewed_late),
}
