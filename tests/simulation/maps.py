"""Maps: their load, clients that read and follow them, and what must hold.

Nodes, threads and clients put and remove keys: of any value, with `if_new`, and counters with
`expect`. Clients of the second generation read pages, and recover. Clients of the first generation
get changes as publications. Other plans have no maps.

Invariants, besides those that clients judge as they follow:

    equal       at the end each client has the entries and the position of the engine
    kept        an acknowledged put is in the map, or another change of its key came after it
    expired     no entry outlives its lifetime, and each is removed once
    if_new      of the puts into a key that is never removed, one was made in each epoch
    expect      each increment follows the one before
    truth       entries were put, by their key, and were not refused
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

from realtime.clients.maps import MAP, STATE, STREAM
from realtime.cluster.member import Member, NewPublication
from realtime.engine.maps import KeyMode
from realtime.errors import EngineUnavailable, UnrecoverablePosition
from realtime.node.node import Node
from realtime.payload import check
from realtime.protocol.messages import StreamPosition
from realtime.serving import run_by_hand
from tests.simulation.clients import STREAMS, TRANSPORTS, WEBSOCKET, SimulatedClient, Subscription

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

LASTING, MORTAL = "lasting:0", "mortal:0"
MAPS = LASTING, MORTAL
NAMESPACES: list[dict[str, Any]] = [
    {"name": "lasting", "map": "persistent"},
    {"name": "mortal", "map": "recoverable", "map_key_ttl": 5},
]
CLOCK_JUMPS = "the clock of PostgreSQL jumps"
FILLED = 10
READING = 2.0
"""Seconds for reading the maps at the end."""


@dataclass(slots=True)
class Change:
    """A put or removal, and the reply that its maker has got."""

    number: int
    channel: str
    key: str
    began: float
    removed: bool = False
    is_mortal: bool = False
    value: int = 0
    """Of a counter."""
    ended: float | None = None
    kept: bool | None = None
    """None: unknown."""
    offset: int = 0
    epoch: str = ""

    def may_follow(self, other: Change) -> bool:
        """Return whether it may have been made after another one."""
        if self.offset and other.offset and self.epoch == other.epoch:
            return self.offset > other.offset
        return self.kept is not False and (self.ended is None or self.ended > other.began)


class MapClient(SimulatedClient):
    """A client of one map."""

    def __init__(self, maps: Maps, name: str, generation: int, channel: str, wire: str) -> None:
        super().__init__(maps.service, name, generation, {channel: True}, "", wire)
        self._maps = maps
        (self.map,) = self.subscriptions.values()
        self.seen: dict[str, Any] = {}
        """None: the key was removed. Nothing: the client was not told of the key, which a late page
        lacks, too, where it was removed after the first one."""
        self._page: dict[str, Any] = {}

    def subscribe(self, subscription: Subscription, run: int) -> None:
        if self.generation == 1:
            super().subscribe(subscription, run)
        elif run == self.run and not subscription.asking and not subscription.active:
            self._page = {}
            flow: dict[str, Any] = {"phase": STATE}
            subscription.recovers &= not self._maps.forgets()
            if subscription.recovers:
                flow = {"phase": STREAM, "recover": True}
                flow |= {"epoch": subscription.epoch, "offset": subscription.offset}
            self._ask(flow, run)

    def _ask(self, flow: dict[str, Any], run: int) -> None:
        if run != self.run:
            return
        self.map.asking = True
        params = {"channel": self.map.channel, "type": MAP, "flag": 1, "limit": 100, **flow}
        self._call("subscribe", params, self._subscribed, (self.map, self.run))

    def _check_error(self, error: dict[str, Any]) -> None:
        super()._check_error(error)
        if error["code"] == UnrecoverablePosition.code:
            self.map.recovers = False

    def _entered(self, subscription: Subscription, result: dict[str, Any]) -> None:
        is_recovered = subscription.recovers and bool(result.get("recovered"))
        publications = result.get("publications", [])
        if not is_recovered:
            self._take_page(result)
            if result.get("phase") == STATE:
                self.map.asking = True
                flow = {"phase": STATE, **self._page}
                self._world.after(self._maps.pause(), self._ask, flow, self.run)
                return
            subscription.epoch, subscription.offset = result["epoch"], result.get("offset", 0)
            if publications:
                subscription.offset = publications[0]["offset"] - 1
            if self._page and self._page["offset"] != subscription.offset:
                self._judge.fail(f"{self.name} has a map of {self._page} and {publications}")
        elif result["epoch"] != subscription.epoch:
            self._judge.fail(f"{self.name} recovered {subscription.channel} in another epoch")
        self._judge.note(f"{self.name} follows {subscription.channel}: {result}")
        for publication in publications:
            self._take(subscription, publication)
        if subscription.offset != result.get("offset", 0):
            self._judge.fail(f"{self.name} has {subscription.offset} after {result}")
        subscription.active = subscription.recovers = True
        subscription.entries += 1

    def _take_page(self, result: dict[str, Any]) -> None:
        if not self._page:
            self.seen = {}
        for entry in result.get("state", ()):
            if entry["key"] in self.seen:
                self._judge.fail(f"{self.name} read {entry['key']} twice")
            self._maps.deliver(self, entry["key"], entry["data"])
            self.seen[entry["key"]] = entry["data"]
        if result.get("phase") == STATE or self._page:
            first = self._page or result
            self._page = {"offset": first.get("offset", 0), "epoch": first["epoch"]}
            self._page |= {"cursor": result["cursor"]} if "cursor" in result else {}

    def _take(self, subscription: Subscription, publication: dict[str, Any]) -> None:
        change = publication if self.generation == 2 else publication["data"]
        key, value = change["key"], None if change.get("removed") else change["data"]
        offset = publication["offset"]
        if offset != subscription.offset + 1:
            self._judge.fail(
                f"{self.name} was delivered {offset} of {subscription.channel} after"
                f" {subscription.offset}, untold"
            )
        subscription.offset = offset
        self._judge.deliveries += 1
        if value is not None:
            self._maps.deliver(self, key, value)
        elif key in self.seen and self.seen[key] is None:
            self._judge.fail(f"{self.name} was told twice that {key} is removed, at {offset}")
        self.seen[key] = value

    def _is_whole(self, subscription: Subscription) -> bool:
        return False

    def change(self, change: Change) -> None:
        """Put or remove a key."""
        params: dict[str, Any] = {"channel": change.channel, "type": MAP, "key": change.key}
        params |= {"removed": True} if change.removed else {"data": [change.number, 0]}
        self._call("publish", params, self._has_changed, change)

    def _has_changed(self, message: dict[str, Any], change: Change) -> None:
        if "error" in message:
            super()._check_error(message["error"])
        else:
            change.ended, change.kept = self._world.now, change.removed is False or None


class Maps:
    """See the module."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._judge, self._world = service.judge, service.world
        self._chance = Random(f"{service.plan.seed} maps")
        self._keys = self._chance.choice((5, 40, 250))
        self._changes: dict[int, Change] = {}
        self._delivered: set[int] = set()
        self._entries: dict[str, tuple[dict[str, Any], StreamPosition]] = {}
        self.clients: list[MapClient] = []
        self._world.at(1.0, self._fill, 0)

    def _client(self, number: int) -> MapClient:
        wire = self._chance.choice((WEBSOCKET, WEBSOCKET, *TRANSPORTS))
        generation = 2 if wire in STREAMS else self._chance.choice((1, 2, 2))
        return MapClient(self, f"map{number}", generation, self._chance.choice(MAPS), wire)

    def pause(self) -> float:
        """Return how long a client waits before it asks for the next page."""
        return self._chance.choice((0.0, 0.0, 0.3)) * self._chance.random()

    def forgets(self) -> bool:
        """Return whether a client begins anew, as a page that is loaded again."""
        return self._chance.random() < 0.2

    # load

    def _fill(self, first: int) -> None:
        """Put every key of the lasting map, a few at once."""
        for number in range(first, min(first + FILLED, self._keys)):
            self._put(LASTING, f"k{number}")
        if first + FILLED < self._keys:
            self._world.after(0.05, self._fill, first + FILLED)
        else:
            self.clients += [self._client(n) for n in range(self._chance.choice((2, 8, 20)))]
            self._load()

    def _load(self) -> None:
        if not self.service.is_loaded:
            return
        chance = self._chance
        for _ in range(chance.choice((1, 1, 2, 20))):
            self._one(chance)
        self._world.after(chance.expovariate(self.service.plan.rate / 4), self._load)

    def _one(self, chance: Random) -> None:
        channel = chance.choice(MAPS)
        drawn, member = chance.random(), chance.choice(self.service.nodes)
        if drawn < 0.1:
            counter = f"counter{chance.randrange(2)}"
            member.do(lambda node: self._increment(node, counter))
            return
        key = f"k{chance.randrange(self._keys)}"
        if drawn < 0.2:
            channel, key = LASTING, f"seat{int(self._world.now) // 3}"
        change = self._new(channel, key)
        mode: KeyMode = chance.choice(("", "", "", "if_new", "if_exists"))
        if drawn < 0.2:
            mode = "if_new"
        elif drawn < 0.35:
            change.removed, mode = True, ""
        elif drawn < 0.5:
            change.is_mortal = True
            # when nodes remove it
            self._world.after(chance.uniform(2.0, 3.1), self._put, channel, key)
        elif drawn < 0.65:
            client = chance.choice(self.clients)
            if client.is_settled:
                client.change(change)
                return
        if drawn > 0.85 and self.service.threads:
            thread = chance.choice(self.service.threads)
            if thread.process.alive:
                work = lambda: run_by_hand(self._make(thread.member, change, mode))  # noqa: E731
                thread.process.begin_thread(work)
                return
        member.do(lambda node: self._make(node, change, mode))

    def _put(self, channel: str, key: str) -> None:
        change, member = self._new(channel, key), self._chance.choice(self.service.nodes)
        member.do(partial(self._make, change=change, mode=""))

    def _new(self, channel: str, key: str, value: int = 0) -> Change:
        change = Change(len(self._changes) + 1, channel, key, self._world.now, value=value)
        change.is_mortal = channel == MORTAL
        self._changes[change.number] = change
        return change

    async def _make(self, member: Member, change: Change, mode: KeyMode, **how: Any) -> None:
        new = NewPublication(
            change.channel,
            check(b"null" if change.removed else b"[%d,%d]" % (change.number, change.value)),
            key=change.key,
            removed=change.removed,
            key_mode=mode,
            ttl=2 if change.is_mortal and change.channel == LASTING else None,
            **how,
        )
        try:
            published = await member.publish_new(new, self.service.options_of(change.channel))
        except EngineUnavailable as error:
            self._judge.miss_engine("a map", error)
            return
        change.ended, change.kept = self._world.now, published.kept
        self._judge.note(f"{change}: {published.reason}")
        if published.position is not None and published.kept:
            change.offset, change.epoch = published.position.offset, published.position.epoch
        if not published.kept and change.number in self._delivered:
            self._judge.fail(f"{change} was refused, and delivered")

    async def _increment(self, node: Node, key: str) -> None:
        assert node.maps is not None
        page = await node.maps.get(LASTING, key)
        at, value = 0, 0
        for entry in page.entries:
            at, value = entry.offset, int(entry.data.json[1:-1].split(b",")[1])
        change = self._new(LASTING, key, value + 1)
        await self._make(node, change, "", expect=StreamPosition(at, page.position.epoch))

    def put_last(self) -> None:
        """Put once more into each map, for ever: that shows what was missed."""
        for channel in MAPS:
            self._put(channel, "last")

    # the end

    def deliver(self, client: MapClient, key: str, data: list[int]) -> None:
        """Take the data of a key that a client has got."""
        self._check_true(client.name, client.map.channel, key, data)
        self._delivered.add(data[0])

    def _check_true(self, who: str, channel: str, key: str, data: list[int]) -> None:
        put = self._changes.get(data[0])
        if put is None or (put.channel, put.key, put.value) != (channel, key, data[1]):
            self._judge.fail(f"{who} has {data} for {key} of {channel}, which was not put: {put}")
        elif put.removed or put.kept is False:
            self._judge.fail(f"{who} has {put}")

    def read(self) -> None:
        """Read the maps of the engine, and let time pass."""
        self.service.nodes[0].do(self._read)
        self._world.run(READING)

    async def _read(self, node: Node) -> None:
        assert node.maps is not None
        for channel in MAPS:
            entries: dict[str, Any] = {}
            page = await node.maps.page(channel, limit=1000)
            for entry in page.entries:
                number, value = map(int, entry.data.json[1:-1].split(b","))
                entries[entry.key] = [number, value]
            self._entries[channel] = entries, page.position

    def check(self) -> None:
        """Check what must be true when all faults are over."""
        for client in self.clients:
            entries, position = self._entries[client.map.channel]
            left = {key: data for key, data in client.seen.items() if data is not None}
            if client.generation == 1:
                entries = {key: data for key, data in entries.items() if key in client.seen}
            if StreamPosition(client.map.offset, client.map.epoch) != position or left != entries:
                differs = {k for k in {*left, *entries} if left.get(k) != entries.get(k)}
                self._judge.fail(
                    f"{client.name} is at {client.map.offset}:{client.map.epoch} of"
                    f" {client.map.channel}, which is at {position}; {sorted(differs)} differ"
                )
        by_key: dict[tuple[str, str], list[Change]] = {}
        for change in self._changes.values():
            by_key.setdefault((change.channel, change.key), []).append(change)
        for (channel, key), changes in by_key.items():
            entries, position = self._entries[channel]
            number = entries.get(key, [0])[0]
            if number:
                self._check_true("the engine", channel, key, entries[key])
                if self._changes[number].is_mortal and CLOCK_JUMPS not in self.service.counts:
                    self._judge.fail(f"{self._changes[number]} did not expire")
            for put in changes:
                if put.kept and not put.removed and put.number != number and not put.is_mortal:
                    self._check_replaced(put, number, changes, position.epoch)
        self._check_asked()

    def _check_replaced(
        self, put: Change, number: int, changes: Iterable[Change], epoch: str
    ) -> None:
        """Check that a put which is not in its map may have been replaced there."""
        if put.epoch != epoch and (put.epoch or self._judge.may_end_epochs):
            return  # the stream was lost, or may have been
        after = [each for each in changes if each is not put and each.may_follow(put)]
        if number:
            after = [each for each in after if each.number == number]
        elif not any(each.removed or each.is_mortal for each in after):
            after = []
        if not after:
            self._judge.fail(f"{put} is not in its map, and nothing came after it")

    def _check_asked(self) -> None:
        made: dict[tuple[str, str], list[Change]] = {}
        for change in self._changes.values():
            if change.kept and change.key.startswith(("seat", "counter")):
                made.setdefault((change.key, change.epoch), []).append(change)
        for (key, _), changes in made.items():
            changes.sort(key=lambda change: change.offset)
            if key.startswith("seat") and len(changes) > 1:
                self._judge.fail(f"{changes} were new")
            for before, change in pairwise(changes):
                if key.startswith("counter") and change.value <= before.value:
                    self._judge.fail(f"{before} was lost, {change} came after it")
