"""Faults: what may go wrong, and how often. Each returns whether it could happen at that moment.

A fault draws from chances of its own, which its plan gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from realtime.errors import Disconnect
from realtime.node.node import Node
from tests.simulation.network import Link
from tests.simulation.redis_server import RedisServer, Shard

if TYPE_CHECKING:
    from tests.simulation.members import NodeProcess
    from tests.simulation.scenario import Service
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
    members: list[NodeProcess | ThreadProcess] = [*service.nodes, *service.threads]
    process = chance.choice(members).process
    if server is None or not process.alive:
        return False
    how = chance.choice(("stall", "deafen", "cut"))
    service.network.separate(process, server.process, chance.uniform(0.1, 12), how)
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
    shard.restart(keeps, chance.uniform(0.05, 4))
    return True


def _fail_over(service: Service, chance: Random) -> bool:
    shard = _shard(service, chance)
    if shard is None or shard.replica is None or not shard.is_well:
        return False
    shard.fail_over(chance.choice(("planned", "lost")), chance.uniform)
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
    shard.master.evict(chance.choice(keys))
    return True


def _save(service: Service, chance: Random) -> bool:
    for shard in service.shards:
        shard.master.save()
    return bool(service.shards)


def _at_a_node(service: Service, chance: Random, work: Callable[[Node], Any]) -> bool:
    member = chance.choice(service.nodes)
    if member.node is None or not member.process.alive:
        return False
    member.do(work)
    return True


def _unsubscribe(service: Service, chance: Random) -> bool:
    user, channel = chance.choice(service.clients).name, chance.choice(service.kept)
    return _at_a_node(service, chance, lambda node: node.unsubscribe_user(user, channel))


def _disconnect(service: Service, chance: Random) -> bool:
    user = chance.choice(service.clients).name
    again = Disconnect(4001, "come back", reconnect=True)
    return _at_a_node(service, chance, lambda node: node.disconnect_user(user, again))


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
    "a user is unsubscribed": (_unsubscribe, 6),
    "a user is disconnected": (_disconnect, 6),
}
"""By name: the fault, and how often it is drawn."""

NOT_COUNTED = {"a socket stalls", "a connection to Redis stalls", "a user is unsubscribed"}
"""Delays and wishes are no faults."""
