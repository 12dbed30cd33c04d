"""Faults: what may go wrong, and how often. Each returns whether it could happen at that moment.

A fault draws from chances of its own, which its plan gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING

from realtime.channel_rules import CONTROL
from realtime.errors import Disconnect
from tests.simulation.added_faults import ADDED_FAULTS, LOST_ON_THE_WAY
from tests.simulation.checks import CLAIM
from tests.simulation.network import Link
from tests.simulation.plan import CLUSTER, POSTGRESQL
from tests.simulation.postgresql_faults import POSTGRESQL_FAULTS, server_of
from tests.simulation.redis_cluster import Cluster, ClusterShard
from tests.simulation.redis_server import RedisServer, Shard
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.members import NodeProcess
    from tests.simulation.scenario import Service
    from tests.simulation.site import Writer
    from tests.simulation.threads import ThreadProcess

Fault = Callable[["Service", Random], bool]


def _socket(service: Service, chance: Random) -> Link | None:
    ends = [peer.end for peer in service.peers if peer.end is not None]
    return chance.choice(ends).link if ends else None


def _with(
    find: Callable[[Service, Random], Link | None], change: Callable[[Link, Random], object]
) -> Fault:
    """Return a fault that changes a link, if one is found."""

    def fault(service: Service, chance: Random) -> bool:
        link = find(service, chance)
        if link is not None:
            change(link, chance)
        return link is not None

    return fault


def _all_sockets_of_a_node(service: Service, chance: Random) -> bool:
    member = chance.choice(service.nodes)
    links = service.network.links(service.outside, member.process)
    for link in links:
        link.cut()
    return bool(links)


def _kill_node(service: Service, chance: Random) -> bool:
    member = chance.choice(service.nodes)
    if not member.process.alive:
        return False
    member.process.kill()
    service.world.after(chance.uniform(0.1, 5), member.start)
    return True


def _kill_thread(service: Service, chance: Random) -> bool:
    alive = [member for member in service.threads if member.process.alive]
    if not alive:
        return False
    member = chance.choice(alive)
    member.process.kill()
    service.world.after(chance.uniform(0.1, 5), member.start)
    return True


def _stop_node(service: Service, chance: Random) -> bool:
    member = chance.choice(service.nodes)
    if not member.process.alive or member.process.frozen or member.node is None:
        return False
    seconds = chance.uniform(0.1, 2)
    process = member.process

    def stopped(_: object) -> None:
        if process.alive:
            process.kill()
            service.world.after(seconds, member.start)

    process.spawn(member.stop()).add_done_callback(stopped)
    return True


def _freeze_node(service: Service, chance: Random) -> bool:
    process = chance.choice(service.nodes).process
    if process.frozen or not process.alive:
        return False
    process.freeze()
    service.world.after(chance.choice((0.2, 2.0, 8.0, 15.0)), process.thaw)
    return True


def _move_clock(service: Service, chance: Random) -> bool:
    process = chance.choice(service.nodes).process
    process.skew = chance.uniform(-5, 5)
    return True


def _shard(service: Service, chance: Random) -> Shard | None:
    return chance.choice(service.shards) if service.shards else None


def _server(service: Service, chance: Random) -> RedisServer | None:
    shard = _shard(service, chance)
    if shard is None:
        return None
    server = chance.choice(shard.servers)
    return server if server.process.alive else None


def _redis_link(service: Service, chance: Random) -> Link | None:
    server = _server(service, chance)
    links = [] if server is None else service.network.links(server.process)
    return chance.choice(links) if links else None


def _separate(service: Service, chance: Random) -> bool:
    server = _server(service, chance)
    return _separate_from(None if server is None else server.process, service, chance)


def _separate_from(server: Process | None, service: Service, chance: Random) -> bool:
    members: list[NodeProcess | ThreadProcess | Writer] = [*service.nodes, *service.threads]
    if service.site is not None:
        members += service.site.writers
    process = chance.choice(members).process
    if server is None or not process.alive:
        return False
    how = chance.choice(("stall", "deafen", "cut"))
    service.network.separate(process, server, chance.uniform(0.1, 12), how)
    return True


def _freeze_redis(service: Service, chance: Random) -> bool:
    server = _server(service, chance)
    if server is None or server.process.frozen:
        return False
    server.process.freeze()
    service.world.after(chance.choice((0.05, 1.0, 6.5)), server.process.thaw)
    return True


def _restart_redis(service: Service, chance: Random) -> bool:
    shard = _shard(service, chance)
    if shard is None or not shard.is_well:
        return False
    keeps = chance.choice(("all", "all", "saved", "nothing"))
    if keeps == "saved" and not service.plan.epoch_per_run:
        keeps = "all"
    if keeps != "all":
        service.wishes.lose()
    service.judge.may_lose_keys |= keeps != "all"
    service.judge.may_end_epochs |= keeps != "all"
    shard.restart(keeps, chance.uniform(0.05, 4))
    return True


def _fail_over(service: Service, chance: Random) -> bool:
    shard = _shard(service, chance)
    if shard is None or not shard.may_fail_over:
        return False
    ways = shard.failovers if service.plan.epoch_per_run else shard.failovers[:1]
    how = chance.choice(ways)
    if how == "lost":
        service.wishes.lose()
    service.judge.may_lose_keys |= service.cluster is None or how != "planned"
    shard.fail_over(how, chance.uniform)
    return True


def _forget_scripts(service: Service, chance: Random) -> bool:
    server = _server(service, chance)
    if server is not None:
        server.database.forget_scripts()
    return server is not None


def _evict(service: Service, chance: Random) -> bool:
    """Of those that expire, as with `volatile-lru`: others belong to the promises."""
    shard = _shard(service, chance)
    expiries = {} if shard is None else shard.master.database.expiries
    # whoever repeats a publication without its idempotency key publishes it twice
    keys = [key for key in expiries if b":once:" not in key]
    if shard is None or not keys:
        return False
    key = chance.choice(keys)
    if CONTROL.encode() in key:
        service.wishes.lose()
    service.judge.may_end_epochs |= service.plan.meta_lifetime > 0
    shard.master.evict(key)
    return True


def _lose_claim(service: Service, chance: Random) -> bool:
    if service.postgresql is not None:
        owners = service.postgresql.database.tables["owner"]
        if owners:
            del owners[chance.choice(list(owners))]
        return bool(owners)
    claims = [
        (shard, key)
        for shard in service.shards
        for key in shard.master.database.values
        if CLAIM in key
    ]
    if not claims:
        return False
    shard, key = chance.choice(claims)
    shard.master.evict(key)
    return True


def _save(service: Service, chance: Random) -> bool:
    for shard in service.shards:
        shard.master.save()
    return bool(service.shards)


def _unsubscribe(service: Service, chance: Random) -> bool:
    user, channel = chance.choice(service.clients).name, chance.choice(service.kept)
    member = chance.choice(service.nodes)
    return member.do(lambda node: service.wishes.unsubscribe(member, node, user, channel))


def _disconnect(service: Service, chance: Random) -> bool:
    user = chance.choice(service.clients).name
    again = Disconnect(4001, "come back", reconnect=True)
    member = chance.choice(service.nodes)
    return member.do(lambda node: service.wishes.disconnect(member, node, user, again))


def _read_slowly(*intervals: float) -> Fault:
    """Return the fault of a client that reads one piece in an interval, or nothing with 0."""

    def fault(service: Service, chance: Random) -> bool:
        peers = [peer for peer in service.peers if peer.end is not None]
        if not peers:
            return False
        peer = chance.choice(peers)
        assert peer.end is not None
        service.judge.slow.add(peer.name)
        peer.end.read_slowly(chance.choice((1.0, 5.0, 20.0)), chance.choice(intervals))
        return True

    return fault


def _slot(
    service: Service, chance: Random
) -> tuple[Cluster, int, ClusterShard, ClusterShard] | None:
    """Return a slot that may move: the cluster, the slot, its shard, and another one."""
    cluster = service.cluster
    if cluster is None:
        return None
    slot = chance.choice(cluster.slots)
    source = cluster.owner(slot)
    target = chance.choice([shard for shard in cluster.shards if shard is not source])
    if not (source.is_well and target.is_well) or slot in source.master.moving:
        return None
    return cluster, slot, source, target


def _move_slot(service: Service, chance: Random) -> bool:
    found = _slot(service, chance)
    if found is not None:
        cluster, slot, _, target = found
        cluster.begin_move(slot, target, chance)
    return found is not None


def _move_slots_at_once(service: Service, chance: Random) -> bool:
    found = _slot(service, chance)
    if found is None:
        return False
    cluster, slot, source, target = found
    of_source = sorted(each for each in cluster.slots if cluster.owner(each) is source)
    begin = of_source.index(slot)
    some = of_source[begin : begin + chance.randint(1, 4)]
    cluster.move_at_once(
        [each for each in some if each not in source.master.moving], target, chance
    )
    return True


def _stay_behind(service: Service, chance: Random) -> bool:
    if service.cluster is None:
        return False
    server = chance.choice(service.cluster.servers)
    server.stale_until = service.world.now + chance.choice((1.0, 5.0, 10.0))
    return True


FAULTS: Mapping[str, tuple[Fault, int]] = {
    "a socket is cut": (_with(_socket, lambda link, _: link.cut()), 60),
    "a socket goes deaf": (_with(_socket, lambda link, _: link.deafen()), 3),
    "a socket stalls": (
        _with(_socket, lambda link, chance: link.stall(chance.uniform(0.1, 10))),
        8,
    ),
    "all sockets of a node are cut": (_all_sockets_of_a_node, 1),
    "a node is killed": (_kill_node, 1),
    "a node stops": (_stop_node, 1),
    "a node freezes": (_freeze_node, 2),
    "a clock is set": (_move_clock, 1),
    "a publisher is killed": (_kill_thread, 1),
    "a connection to Redis is cut": (_with(_redis_link, lambda link, _: link.cut()), 8),
    "a connection to Redis stalls": (
        _with(_redis_link, lambda link, chance: link.stall(chance.uniform(0.01, 8))),
        4,
    ),
    "a process is cut off from Redis": (_separate, 2),
    "Redis freezes": (_freeze_redis, 1),
    "Redis restarts": (_restart_redis, 1),
    "Redis fails over": (_fail_over, 2),
    "Redis forgets its scripts": (_forget_scripts, 3),
    "Redis evicts a key": (_evict, 1),
    "a claim is lost": (_lose_claim, 3),
    "a client reads nothing": (_read_slowly(0.0), 6),
    "a client reads slowly": (_read_slowly(0.03, 0.1, 0.5), 6),
    "a user is unsubscribed": (_unsubscribe, 6),
    "a user is disconnected": (_disconnect, 6),
}
"""By name: the fault, and how often it is drawn."""

CLUSTER_FAULTS: Mapping[str, tuple[Fault, int]] = {
    "a slot moves key by key": (_move_slot, 5),
    "slots move at once": (_move_slots_at_once, 2),
    "a server has an old map of slots": (_stay_behind, 1),
}
"""As FAULTS; of a Redis Cluster."""

OVER_POSTGRESQL: Mapping[str, tuple[Fault, int]] = {
    **{name: fault for name, fault in FAULTS.items() if "Redis" not in name},
    **POSTGRESQL_FAULTS,
    "a process is cut off from PostgreSQL": (
        lambda service, chance: _separate_from(server_of(service).process, service, chance),
        2,
    ),
}
"""As FAULTS; where streams live in PostgreSQL."""

ALL_FAULTS = {**FAULTS, **CLUSTER_FAULTS, **OVER_POSTGRESQL, **ADDED_FAULTS}

SLOW = {"a client reads nothing", "a client reads slowly"}
"""They alone neither delay nor close another client."""
SPARES_SESSIONS = {
    LOST_ON_THE_WAY,
    "a socket is cut",
    "a clock is set",
    "a publisher is killed",
    "Redis forgets its scripts",
    "a user is unsubscribed",
    "a user is disconnected",
}
"""They alone let no session be forgotten, nor its claim."""
SPARES_SUBSCRIBED = {*SLOW, *SPARES_SESSIONS, "all sockets of a node are cut"}
"""They alone delay no client that is subscribed."""
SPARES_ENGINE = {*SPARES_SUBSCRIBED, "a socket goes deaf", "a socket stalls", "a claim is lost"}
"""They alone keep nothing from an answer of the engine."""
SPARES_RELAYS = {
    *SLOW,
    "a socket is cut",
    "a socket goes deaf",
    "a socket stalls",
    "all sockets of a node are cut",
    "a claim is lost",
    "a user is unsubscribed",
    "a user is disconnected",
}
"""They alone delay no durable publication."""
NOT_COUNTED = {*SLOW, "a user is unsubscribed"}
NOT_COUNTED |= {"publications from Redis are late"}
NOT_COUNTED |= {f"a {link} stalls" for link in ("socket", "connection to Redis")}
NOT_COUNTED |= {"a connection to PostgreSQL stalls", "the disk of PostgreSQL stalls"}
"""Delays and wishes are no faults."""


def kinds_of(engine: str) -> Mapping[str, int]:
    """Return what may go wrong with an engine, and how often."""
    of_engine = {CLUSTER: {**FAULTS, **CLUSTER_FAULTS}, POSTGRESQL: OVER_POSTGRESQL}
    faults = of_engine.get(engine, FAULTS)
    return {name: weight for name, (_, weight) in faults.items()}
