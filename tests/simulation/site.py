"""The site: a database, processes that write durable publications, and relays in the nodes.

    Writer ─ transaction ─► Rows ─► rows ══► RelayThread, in processes of nodes ══► Redis

Rows, relays and wake-ups are the product's. A thread is a greenlet; the socket that wakes it is a
flag of the simulation.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

import django.db
from django.db import connections, transaction

from realtime.cluster.member import Member, NewPublication
from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import Published, Store, Streams
from realtime.errors import EngineUnavailable
from realtime.hooks.registry import Registry
from realtime.payload import check
from realtime.pending.models import Pending
from realtime.pending.relay import RelayThread
from realtime.pending.rows import Rows
from realtime.server_api import transactions
from realtime.serving import Serving
from tests.simulation.greenlets import current, sleep, suspend, wait
from tests.simulation.redis_server import RedisServer
from tests.simulation.row_judge import RowJudge
from tests.simulation.site_backend import connected
from tests.simulation.site_database import SiteDatabase
from tests.simulation.site_joined import JoinedDatabase
from tests.simulation.world import Process, World

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

ODD = "kept:odd"
"""A channel whose key in Redis is of another type: the service refuses what is published there. In
PostgreSQL it is like the others."""


class Site:
    """See the module."""

    def __init__(self, service: Service) -> None:
        plan = service.plan
        self.service = service
        if plan.is_joined:
            assert service.postgresql is not None
            joined = JoinedDatabase(service.world, service.postgresql, loses=plan.loses_commits)
            self.database: SiteDatabase = joined
        else:
            self.database = SiteDatabase(service.world, plan.database)
        self.judge = RowJudge(service.world, service.judge, self.database)
        if plan.is_joined:
            joined.on_lost = self.judge.forget
        kind = "redis" if service.postgresql is None else "postgresql"
        url = "" if plan.is_joined else "postgresql://elsewhere"
        self.config = replace(
            service.config,
            engine=kind,
            database_url=url,
            database_history_meta_ttl=service.keeping.meta_lifetime,
        )
        gone = replace(service.config.namespaces["plain"])
        namespaces = {**service.config.namespaces, "gone": gone}
        self.writers_config = replace(self.config, namespaces=namespaces)
        for shard in service.shards:
            for server in shard.servers:
                server.on_publish = self._published
            shard.on_loss = self.judge.lose
        if service.postgresql is not None:
            service.postgresql.on_publish = self.judge.publish
        else:
            meta = service.keys.stream(ODD)[1].encode()
            service.database_of(ODD).execute((b"SET", meta, b"not a stream"))
            self._unpack = service.new_bus().deserialize
        self.writers = [Writer(self, f"writer{n}") for n in range(plan.writers)]

    def _published(self, server: RedisServer, data: bytes) -> None:
        content = self._unpack(data)
        record = content.get("record")
        if content.get("channel") and isinstance(record, list) and str(record[0]).isdigit():
            self.judge.publish(content["channel"], int(record[0]))

    def serving(self, config: Config) -> SiteServing:
        """Return the service in one process."""
        return SiteServing(self, config)

    def write(self) -> None:
        """Let one of the writers begin a transaction."""
        self.service.world.random.choice(self.writers).write()

    def check(self) -> None:
        """Check the rows, when all faults are over."""
        self.judge.check()


class SiteServing(Serving):
    """The service in one process of the site: it tells the judge what relays learn."""

    def __init__(self, site: Site, config: Config) -> None:
        self._site = site
        super().__init__(_Configuration(config), Registry(), self)  # type: ignore[arg-type]

    def of(self, config: Config) -> SiteServing:
        """Return what makes engines."""
        return self

    def blocking_store(self, config: Config, timeout: float | None = None) -> Store:
        """Return what reaches the engine by blocking calls."""
        return self._site.service.new_store()

    def database(self, config: Config) -> SimpleNamespace:
        """Return where the engine is."""
        return SimpleNamespace(address=self._site.service.addresses.statements)

    def call(self, work: Callable[[Any], Any], **options: Any) -> Any:
        return super().call(lambda member: work(_Told(member, self._site.judge)), **options)


class _Configuration:
    def __init__(self, config: Config) -> None:
        self._config = config

    def current(self) -> Config:
        return self._config


class _Told:
    """A member that tells the judge what becomes of publications."""

    def __init__(self, member: Member, judge: RowJudge) -> None:
        self._judge = judge
        self.wake_relays = member.wake_relays
        self._publish_many = member.publish_many

    async def publish_many(
        self,
        publications: Sequence[tuple[NewPublication, ChannelOptions]],
        streams: Streams | None = None,
    ) -> list[Published | EngineUnavailable]:
        outcomes = await self._publish_many(publications, streams)
        for (new, _), outcome in zip(publications, outcomes, strict=True):
            told = partial(self._judge.relay, int(new.data.raw), outcome)
            if streams is None:
                told()
            elif isinstance(outcome, Published):
                connections["default"].connection.after_commit.append(told)
        return outcomes


class _RolledBack(Exception):
    """The site changes its mind."""


class Writer:
    """A process that writes in transactions, several at once."""

    _transactions = 0

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.process: Process
        self.start()

    def start(self) -> None:
        """Begin, with connections of its own."""
        service = self.site.service
        self.process = Process(service.world, self.name)
        service.network.add(self.process)
        self._rows = Rows(self.site.serving(self.site.writers_config))

    def write(self) -> None:
        """Begin a transaction in a thread."""
        chance = Random(self.site.service.world.random.getrandbits(64))
        if self.process.alive:
            self.process.begin_thread(lambda: self._write(chance))

    def _write(self, chance: Random) -> None:
        try:
            if chance.random() < 0.1:
                self._publish(chance, self._number())
            elif chance.random() < 0.05:
                with self.site.judge.retrying():
                    self._rows.retry()
            else:
                self._transact(chance)
        except (_RolledBack, django.db.Error):
            pass
        finally:
            connections.close_all()

    def _number(self) -> int:
        Writer._transactions += 1
        return Writer._transactions

    def _transact(self, chance: Random) -> None:
        number = self._number()
        with transaction.atomic():
            for _ in range(chance.choice((1, 1, 1, 2, 4))):
                try:
                    with (
                        transaction.atomic() if chance.random() < 0.2 else contextlib.nullcontext()
                    ):
                        self._publish(chance, number)
                        if chance.random() < 0.05:
                            raise _RolledBack
                except _RolledBack:
                    if chance.random() < 0.5:
                        raise
                pause = chance.choice((0.0, 0.001, 0.01, 0.1, 1.0))
                sleep(self.process, chance.random() * pause)
            if chance.random() < 0.1:
                raise _RolledBack

    def _publish(self, chance: Random, transaction_number: int) -> None:
        service = self.site.service
        channel = chance.choice([*service.kept, "kept:all", "plain:0"])
        if chance.random() < 0.03:
            channel = chance.choice((ODD, f"gone:{chance.randint(0, 1)}"))
        if connections["default"].in_atomic_block and chance.random() < 0.5:
            with connections["default"].cursor() as cursor:
                cursor.execute(f"UPDATE site_row SET n = n + 1 WHERE name = '{channel}'")
        delay = chance.uniform(0.5, 30.0) if chance.random() < 0.05 else 0.0
        number = chance.choice((1, 1, 1, 2, 5, 30))
        news = []
        for _ in range(number):
            publishing = self.site.judge.write(channel, transaction_number, delay)
            news.append(NewPublication(channel, check(b"%d" % publishing.number)))
        checked = transactions.check(news, self.site.writers_config)
        due = _Datetime.now(UTC) + timedelta(seconds=delay) if delay else None
        self._rows.add(checked, due, None)


# threads


class SimulatedWaker:
    """Takes the place of `relay.Waker`: a greenlet waits, and the world goes on."""

    def __init__(self) -> None:
        self._is_awake = False
        self._wake: Callable[[], None] | None = None

    def wake(self) -> None:
        self._is_awake = True
        if self._wake is not None:
            self._wake()

    def wait(self, seconds: float, *connections: int) -> None:
        process = current(_worlds[-1])
        self._wake = wait(process, max(seconds, 0.0))
        if self._is_awake:
            self._wake()
        suspend()
        self._wake, self._is_awake = None, False

    def close(self) -> None:
        pass


def _start(thread: RelayThread) -> None:
    process = current(_worlds[-1])
    thread._simulated = process.begin_thread(thread.run)  # type: ignore[attr-defined]


def _is_alive(thread: RelayThread) -> bool:
    return hasattr(thread, "_simulated") and not thread._simulated.dead


def _join(thread: RelayThread, timeout: float) -> None:
    process = current(_worlds[-1])
    deadline = process.loop.time() + timeout
    while _is_alive(thread) and process.loop.time() < deadline:
        sleep(process, 0.05)


class _Datetime(datetime):
    """The time of the world."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(_worlds[-1].unix_time(), tz)


def _uuid() -> uuid.UUID:
    return uuid.uuid4()  # of the world; the field has kept the function of Python


_relay = RelayThread._relay


def _watched_relay(thread: RelayThread, database: str) -> float:
    """Relay; what goes wrong in the relay itself is a defect, and not only a pause."""
    try:
        return _relay(thread, database)
    except (EngineUnavailable, django.db.Error):
        raise
    except Exception as error:
        _worlds[-1].defects.append(f"a relay raises {error!r}")
        raise


@contextlib.contextmanager
def _small_rounds() -> Iterator[None]:
    """Let a round of a relay have few shards and rows, of which each is a long one."""
    with (
        mock.patch("realtime.pending.relay.SHARDS_AT_ONCE", 2),
        mock.patch("realtime.pending.relay.BATCH", 16),
        mock.patch("realtime.pending.reading.SHORT", 2),
        mock.patch("realtime.pending.reading.LONG_TOGETHER", 40),
    ):
        yield


_worlds: list[World] = []


@contextlib.contextmanager
def relaying(site: Site) -> Iterator[None]:
    """Let relays of the product run in greenlets within this block."""
    _worlds.append(site.service.world)
    Writer._transactions = 0
    key = Pending._meta.get_field("key")
    try:
        with (
            connected(site.database),
            mock.patch("realtime.pending.relay.Waker", SimulatedWaker),
            mock.patch("realtime.pending.models.datetime", _Datetime),
            mock.patch.object(key, "_get_default", _uuid),
            _small_rounds() if site.service.plan.seed % 2 else contextlib.nullcontext(),
            mock.patch.object(RelayThread, "start", _start),
            mock.patch.object(RelayThread, "_relay", _watched_relay),
            mock.patch.object(RelayThread, "is_alive", _is_alive),
            mock.patch.object(RelayThread, "join", _join),
        ):
            yield
    finally:
        _worlds.pop()
