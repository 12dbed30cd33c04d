"""The model of a Redis Cluster answers as a real one does, also while a slot moves."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol

import hiredis
import pytest

from realtime.redis.link import encode
from realtime.redis.slots import slot_of
from tests.redis_cluster import RedisCluster, run
from tests.redis_server import RedisServer, has_sharded_pubsub
from tests.server import wait_until
from tests.simulation.network import Network
from tests.simulation.redis_cluster import Cluster
from tests.simulation.redis_cluster_server import ClusterServer
from tests.simulation.redis_server import Connection
from tests.simulation.world import World

pytestmark = pytest.mark.skipif(not has_sharded_pubsub(), reason="SSUBSCRIBE needs Redis 7")

SECONDS = 10.0
ROLES = ("source", "target", "other", "replica")

ONCE = "return redis.call('SET', KEYS[1], ARGV[1])"
AGAIN = "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 'x')"
UNDECLARED = "return redis.call('DEL', ARGV[1], ARGV[2])"
SEND = "return redis.call('SPUBLISH', ARGV[1], 'x')"


class Client(Protocol):
    """A connection to a server."""

    def ask(self, *command: str | int) -> Any:
        """Run a command, and return its reply."""

    def pushes(self, number: int) -> list[Any]:
        """Return what the server sends by itself."""


class RealClient:
    def __init__(self, server: RedisServer) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), SECONDS)
        self._reader = hiredis.Reader()

    def ask(self, *command: str | int) -> Any:
        self._socket.sendall(encode(command))
        return self._next()

    def pushes(self, number: int) -> list[Any]:
        return [self._next() for _ in range(number)]

    def _next(self) -> Any:
        while (reply := self._reader.gets()) is False:
            self._reader.feed(self._socket.recv(65536))
        return reply

    def close(self) -> None:
        self._socket.close()


class ModelClient:
    """It is the end of the connection, too."""

    def __init__(self, world: World, server: ClusterServer) -> None:
        self._world = world
        self._reader = hiredis.Reader()
        self._connection = Connection(server)
        self._connection.connection_made(self)  # type: ignore[arg-type]  # it only writes
        self.write: Callable[[bytes], None] = self._reader.feed

    def ask(self, *command: str | int) -> Any:
        self._connection.data_received(encode(command))
        return self._reader.gets()

    def pushes(self, number: int) -> list[Any]:
        self._world.run(0.1)
        return [self._reader.gets() for _ in range(number)]

    def close(self) -> None:
        """Nothing is open."""


class Side(NamedTuple):
    """The real cluster, or the model, by the roles that servers have for one slot."""

    connect: Callable[[str], Client]
    places: Mapping[str, str]
    begin_move: Callable[[Sequence[str]], None]
    """Begin to move the slot, and move some of its keys."""
    end_move: Callable[[], None]
    fail_over: Callable[[], None]

    def told(self, reply: Any) -> Any:
        """Return a reply in one form: roles for places; of an ERR nothing but the code."""
        if isinstance(reply, list):
            return [self.told(part) for part in reply]
        if not isinstance(reply, hiredis.ReplyError):
            return reply
        text = str(reply)
        if text.startswith("ERR "):
            return "error: ERR"  # versions have different words
        for role, place in self.places.items():
            text = text.replace(place, role)
        return f"error: {text}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """A cluster of which slots move."""
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"), replicas=1).start()
    yield cluster
    cluster.kill()


@pytest.fixture
def tag(unique: str) -> str:
    return f"{{{unique}}}"


@pytest.fixture
def real(cluster: RedisCluster, tag: str) -> Iterator[Side]:
    slot, by_port = slot_of(tag), {server.port: server for server in cluster.servers}
    asked = cluster.servers[0]
    wait_until(lambda: len(servers_of(asked, slot)) == 2, SECONDS, "a replica that is known")
    source, replica = (by_port[server[1]] for server in servers_of(asked, slot))
    target, other = [server for server in cluster.primaries() if server is not source]
    servers = dict(zip(ROLES, (source, target, other, replica), strict=True))
    clients: list[RealClient] = []

    def connect(role: str) -> RealClient:
        clients.append(RealClient(servers[role]))
        return clients[-1]

    def begin_move(keys: Sequence[str]) -> None:
        cluster.begin_move(slot, target)
        for key in keys:
            run(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 5000)

    def end_move() -> None:
        cluster.move_keys(slot, source, target)
        cluster.end_move(slot, target)
        all_know(target)

    def fail_over() -> None:
        cluster.planned_failover(slot)
        all_know(replica)

    def all_know(primary: RedisServer) -> None:
        def has_told_all() -> bool:
            known = [servers_of(each, slot) for each in cluster.servers]
            return all(servers and servers[0][1] == primary.port for servers in known)

        wait_until(has_told_all, SECONDS, "a slot whose new primary all servers know")

    places = {role: f"127.0.0.1:{server.port}" for role, server in servers.items()}
    yield Side(connect, places, begin_move, end_move, fail_over)
    for client in clients:
        client.close()


def servers_of(asked: RedisServer, slot: int) -> list[Any]:
    """Return the primary of a slot and its replica, as a server knows them; [] if it does not."""
    rows = run(asked, "CLUSTER", "SLOTS")
    return next((servers for first, last, *servers in rows if first <= slot <= last), [])


@pytest.fixture
def model(tag: str) -> Iterator[Side]:
    world = World(1, [])
    slot = slot_of(tag)
    with world.answering():
        cluster = Cluster(world, Network(world), [tag])
        source = cluster.owner(slot)
        target, other = [shard for shard in cluster.shards if shard is not source]
        servers = dict(
            zip(ROLES, (source.master, target.master, other.master, source.replica), strict=True)
        )

        def begin_move(keys: Sequence[str]) -> None:
            cluster.begin_move(slot, target, Random(1))
            cluster.give([key.encode() for key in keys], source, target)

        def fail_over() -> None:
            source.fail_over("planned", Random(1).uniform)
            world.run(1.0)

        yield Side(
            lambda role: ModelClient(world, servers[role]),
            {role: "{}:{}".format(*server.place) for role, server in servers.items()},
            begin_move,
            lambda: world.run(SECONDS),
            fail_over,
        )


def commands(tag: str) -> list[tuple[str | int, ...]]:
    """Return commands for keys, of which a stays and b moves, and for a channel."""
    a, b, c, d, channel = (f"{tag}{name}" for name in ("a", "b", "c", "d", "channel"))
    return [
        ("GET", a),
        ("GET", b),
        ("GET", c),
        ("EXISTS", a, b),
        ("EXISTS", b, c),
        ("EXISTS", c, d),
        ("EXISTS", a, "{elsewhere}"),
        ("EVAL", ONCE, 1, a, "1"),
        ("EVAL", ONCE, 2, a, b, "2"),
        ("EVAL", ONCE, 2, b, b, "3"),
        ("EVAL", ONCE, 2, b, c, "4"),
        ("EVAL", ONCE, 2, a, "{elsewhere}", "5"),
        ("EVALSHA", "0" * 40, 1, b),
        ("EVAL", UNDECLARED, 1, a, a, c),
        ("EVAL", UNDECLARED, 1, b, c, d),
        ("EVAL", SEND, 1, a, channel),
        ("EVAL", SEND, 1, b, channel),
        ("SPUBLISH", channel, "x"),
        ("EVAL", AGAIN, 1, a),
        ("GET", a),
        ("SUNSUBSCRIBE", channel),
        ("SSUBSCRIBE", channel),
        ("PING",),
    ]


def replies(side: Side, tag: str, state: str, role: str, asking: bool) -> list[Any]:
    """Bring the slot into a state, and return the replies of a server."""
    at_source = side.connect("source")
    for name in ("a", "b"):
        at_source.ask("SET", f"{tag}{name}", name)
    if state != "stable":
        side.begin_move([f"{tag}b"])
    if state == "moved":
        side.end_move()
    client = side.connect(role)
    found = []
    for command in commands(tag):
        if asking:
            client.ask("ASKING")
        found.append((command, side.told(client.ask(*command))))
    if state == "moving":
        at_source.ask("DEL", f"{tag}a")  # one that asked wrongly may have made it at the target
        side.end_move()
    return found


@pytest.mark.parametrize("asking", [False, True])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("state", ["stable", "moving", "moved"])
def test_replies(real: Side, model: Side, tag: str, state: str, role: str, asking: bool) -> None:
    assert replies(model, tag, state, role, asking) == replies(real, tag, state, role, asking)


def subscriptions(side: Side, tag: str, change: Callable[[Side], None], told: str) -> list[Any]:
    """Subscribe at two servers, change something; return what both get from then on."""
    channel = f"{tag}channel"
    source, replica = side.connect("source"), side.connect("replica")
    found = [source.ask("SSUBSCRIBE", channel), replica.ask("SSUBSCRIBE", channel)]
    found += [side.connect("source").ask("SPUBLISH", channel, "before")]
    found += [*source.pushes(1), *replica.pushes(1)]
    change(side)
    for client, role in ((source, "source"), (replica, "replica")):
        if role in told:
            found += client.pushes(1)
        found += [client.ask("SUNSUBSCRIBE", channel), client.ask("SSUBSCRIBE", channel)]
    for role in ROLES:
        found.append(side.connect(role).ask("SPUBLISH", channel, role))
    return [side.told(reply) for reply in found]


def move(side: Side) -> None:
    side.begin_move([])
    side.end_move()


def test_slot_that_moves_ends_its_subscriptions(real: Side, model: Side, tag: str) -> None:
    found = [subscriptions(side, tag, move, "source, replica") for side in (model, real)]
    assert found[0] == found[1]


def test_master_that_becomes_a_replica_ends_its_subscriptions(
    real: Side, model: Side, tag: str
) -> None:
    found = [
        subscriptions(side, tag, lambda side: side.fail_over(), "source") for side in (model, real)
    ]
    assert found[0] == found[1]
