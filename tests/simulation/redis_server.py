"""Servers of Redis in the network: connections, pub/sub, replicas that lag, Sentinels.

A server is a process; its `Database` answers commands in the order in which they arrive. What a
command changed goes to the replicas as the new values of its keys, after a delay.

What may happen to a `Shard`, besides what may happen to every process:

    restart    with all of its data, with those of an earlier moment, or with none
    failover   a replica becomes the master; the old one serves for a while longer, and what it
               accepts then is dropped when it becomes the replica
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import hiredis

from tests.simulation.network import End, Network, Receiver
from tests.simulation.redis_database import Database
from tests.simulation.redis_values import RedisError, Reply, Status, encode
from tests.simulation.world import Process, World

LAG = 0.002
"""Seconds until a replica has what its master wrote, on average."""
DEMOTION_MAX = 10.0
"""Seconds for which an old master serves on after a planned failover, at most."""
MASTER_NAME = "master"


class Server:
    """A process that answers commands at a place, which it keeps over restarts."""

    process: Process

    def __init__(self, world: World, network: Network, name: str, port: int) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.place = (name, port)
        self.listen()

    def listen(self) -> None:
        """Begin a process that listens."""
        self.process = Process(self.world, self.name)
        self.network.add(self.process)
        self.network.listen(self.process, self.place, self._accept, is_bytes=True)

    def _accept(self) -> Receiver:
        return Connection(self)

    def answer(self, connection: Connection, command: Sequence[bytes]) -> None:
        """Run a command of a connection, and write its reply."""
        raise NotImplementedError

    def left(self, connection: Connection) -> None:
        """Forget a connection that was lost."""


class Connection:
    """The server's side of a connection: one command after another."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader = hiredis.Reader()
        self._end: End | None = None
        self._written: list[bytes] = []
        self._commands: deque[Sequence[bytes]] = deque()
        self._is_waiting = False
        """Whether a command waits for replicas: nothing else runs before it has its reply."""
        self.is_asking = False
        """Whether the next command may use a slot that a server of a cluster imports."""
        self.names: dict[bytes, None] = {}
        """What it is subscribed to."""

    def connection_made(self, transport: End) -> None:
        self._end = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (command := self._reader.gets()) is not False:
            self._commands.append(command)
        self._run()

    def _run(self) -> None:
        while self._commands and not self._is_waiting:
            self._server.answer(self, self._commands.popleft())
        self._flush()

    def wait(self) -> None:
        """Run nothing more until `go_on`."""
        self._is_waiting = True

    def go_on(self, reply: Reply) -> None:
        """Write the reply that was waited for."""
        self._is_waiting = False
        self.write(encode(reply))
        self._run()

    def write(self, data: bytes) -> None:
        if not self._written:
            self._server.process.call(self._flush)
        self._written.append(data)

    def _flush(self) -> None:
        written, self._written = self._written, []
        if self._end is not None and written:
            self._end.write(b"".join(written))

    def unblock(self) -> None:
        """End if a command waits for replicas: the server is no master any more."""
        if self._is_waiting and self._end is not None:
            self._commands.clear()
            self.go_on(RedisError("UNBLOCKED force unblock from blocking operation"))
            self._end.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.left(self)


class RedisServer(Server):
    """One Redis."""

    def __init__(self, world: World, network: Network, name: str) -> None:
        self.world = world
        self.database = self.new_database()
        self.database.publish = self._publish
        self.replicas: list[RedisServer] = []
        self.on_publish: Callable[[RedisServer, bytes], object] = lambda server, data: None
        """Gets what is published, whether there are subscribers or not."""
        self._subscribers: dict[bytes, dict[Connection, None]] = {}
        self.drops = False  # whether the next kept publication does not reach a subscriber
        self._blocked: dict[Connection, None] = {}
        """Those of which a command waits for replicas."""
        self._saved: dict[bytes, Any] = {}
        self._caught_up_at = 0.0
        """When it has, as a replica, all that was written until now."""
        super().__init__(world, network, name, 6379)

    def new_database(self) -> Database:
        return Database(self.world.unix_time, self.world.random.randbytes)

    # life

    def save(self) -> None:
        """Remember the data for a restart."""
        self._saved = self.database.snapshot()

    def restart(self, keeps: str) -> None:
        """Come back after `process.kill`.

        Args:
            keeps: "all" of the data, those that were "saved", or "nothing".
        """
        if keeps != "all":
            self.database.clear()
        if keeps == "saved":
            self.database.apply(self._saved)
        self.database.begin_run()
        self._subscribers.clear()
        self._blocked.clear()
        self.listen()

    def _disconnect_all(self) -> None:
        for link in self.network.links(self.process):
            link.cut()

    def evict(self, key: bytes) -> None:
        """Lose a key, as with too little memory."""
        self.database.execute((b"DEL", key))
        self.replicate()

    # replication

    def replicate(self) -> None:
        """Send what changed to the replicas."""
        changes = self.database.changes()
        if not changes:
            return
        for replica in self.replicas:
            delay = self.world.random.random() * 2 * LAG
            at = replica._caught_up_at = max(replica._caught_up_at, self.world.now + delay)
            self.world.at(at, replica._take, self.database.replid, changes)

    def _take(self, replid: str, changes: dict[bytes, Any]) -> None:
        database = self.database
        if database.role == "slave" and database.replid == replid and self.process.alive:
            database.apply(changes)

    def follow(self, master: RedisServer) -> None:
        """Become a replica: drop everything, and take over what the master has."""
        self.database.become_replica(master.database)
        self.replicas = []
        self._caught_up_at = self.world.now
        if self not in master.replicas:
            master.replicas.append(self)
        self._disconnect_all()

    def promote(self) -> None:
        """Become a master, without replicas."""
        self.database.promote()
        self._disconnect_all()

    def _wait(self, connection: Connection, number: int, milliseconds: int) -> None:
        alive = [replica for replica in self.replicas if replica.process.alive]
        caught_up = sorted(replica._caught_up_at for replica in alive if not replica.process.frozen)
        until = self.world.now + milliseconds / 1000
        if len(caught_up) >= number > 0:
            until = min(until, caught_up[number - 1] + LAG)
        confirmed = sum(at + LAG <= until + 1e-9 for at in caught_up)
        connection.wait()
        self._blocked[connection] = None
        process = self.process

        def reply() -> None:
            if process is self.process and self._blocked.pop(connection, self) is None:
                process.call(connection.go_on, confirmed)

        self.world.at(max(until, self.world.now), reply)

    # commands

    def answer(self, connection: Connection, command: Sequence[bytes]) -> None:
        name = command[0].upper()
        if name in (b"SUBSCRIBE", b"UNSUBSCRIBE"):
            self._change_subscriptions(connection, name, command[1:])
            return
        if name == b"WAIT":
            self._wait(connection, int(command[1]), int(command[2]))
            return
        reply: Reply
        if name == b"PING":
            reply = [b"pong", b""] if connection.names else Status("PONG")
        elif name in (b"CLIENT", b"SELECT"):
            reply = Status("OK")
        else:
            try:
                reply = self.database.execute(command)
            except RedisError as error:
                reply = error
            self.replicate()
        connection.write(encode(reply))

    def _publish(self, channel: bytes, data: bytes) -> int:
        self.on_publish(self, data)
        subscribers = self._subscribers.get(channel)
        if subscribers is None:
            return 0
        message = encode([b"message", channel, data])
        for connection in self.reached(subscribers, data):
            connection.write(message)
        return len(subscribers)

    def reached(self, subscribers: Iterable[Connection], data: bytes) -> Iterable[Connection]:
        """Return the subscribers that a message reaches."""
        if not self.drops or not data.startswith(b"\xc1"):  # it is in no stream
            return subscribers
        self.drops = False
        return [*subscribers][1:]

    def _change_subscriptions(
        self, connection: Connection, name: bytes, channels: Sequence[bytes]
    ) -> None:
        for channel in channels:
            if name in (b"SUBSCRIBE", b"SSUBSCRIBE"):
                connection.names[channel] = None
                self._subscribers.setdefault(channel, {})[connection] = None
            else:
                self._forget(connection, channel)
            connection.write(encode([name.lower(), channel, len(connection.names)]))

    def left(self, connection: Connection) -> None:
        for name in list(connection.names):
            self._forget(connection, name)

    def _forget(self, connection: Connection, channel: bytes) -> None:
        connection.names.pop(channel, None)
        subscribers = self._subscribers.get(channel)
        if subscribers is not None:
            subscribers.pop(connection, None)
            if not subscribers:
                del self._subscribers[channel]


class Sentinel(Server):
    """Names the master."""

    def __init__(self, world: World, network: Network, name: str, master: RedisServer) -> None:
        self.master = master
        super().__init__(world, network, name, 26379)

    def answer(self, connection: Connection, command: Sequence[bytes]) -> None:
        reply: Reply = Status("OK")
        if command[0].upper() == b"SENTINEL":
            host, port = self.master.place
            reply = [host.encode(), b"%d" % port]
        connection.write(encode(reply))


class Shard:
    """One shard of the service: a server, or a master with a replica and Sentinels."""

    failovers: Sequence[str] = ("planned", "lost")
    """How a replica may become the master."""

    def __init__(self, world: World, network: Network, name: str, *, replicated: bool) -> None:
        self.world = world
        self.network = network
        self.master = self.new_server(name)
        self.replica: RedisServer | None = None
        self.sentinels: list[Sentinel] = []
        self.entry: dict[str, Any] = {"host": name, "port": 6379}
        """As the options name it."""
        self.on_loss: Callable[[], object] = lambda: None
        """Called where data may be lost."""
        self._is_failing_over = False
        if replicated:
            self.replica = self.new_server(f"{name}-replica")
            self.replica.follow(self.master)
            self.watch(name)

    def new_server(self, name: str) -> RedisServer:
        return RedisServer(self.world, self.network, name)

    def watch(self, name: str) -> None:
        """Have Sentinels name the master."""
        self.sentinels = [
            Sentinel(self.world, self.network, f"{name}-sentinel{n}", self.master) for n in range(2)
        ]
        places = [sentinel.place for sentinel in self.sentinels]
        self.entry = {"sentinels": places, "master_name": MASTER_NAME}

    @property
    def servers(self) -> Sequence[RedisServer]:
        return [self.master, *([] if self.replica is None else [self.replica])]

    @property
    def is_well(self) -> bool:
        """Whether all of its servers run, and no failover is under way."""
        return not self._is_failing_over and all(server.process.alive for server in self.servers)

    @property
    def may_fail_over(self) -> bool:
        """Whether a replica could become the master now."""
        return self.replica is not None and self.is_well

    def restart(self, keeps: str, seconds: float) -> None:
        """End the master, which is back after a while."""
        master = self.master
        master.process.kill()
        self.world.after(seconds, self._back, master, keeps)

    def _back(self, server: RedisServer, keeps: str) -> None:
        if keeps != "all":
            self.on_loss()
        server.restart(keeps)
        if server is self.master:
            if self.replica is not None:
                self.replica.follow(server)
        else:
            server.follow(self.master)

    def fail_over(self, how: str, chance: Callable[[float, float], float]) -> None:
        """Make the replica the master.

        Args:
            how: "planned": the old master serves on for a while; "lost": it was killed.
            chance: `random.uniform`.
        """
        old, new = self.master, self.replica
        assert new is not None
        self._is_failing_over = True
        self.on_loss()
        if how == "lost":
            old.process.kill()
            self.world.after(chance(1.0, 8.0), self._promote, old, new, chance, how)
        else:
            self._promote(old, new, chance, how)

    def _promote(
        self, old: RedisServer, new: RedisServer, chance: Callable[[float, float], float], how: str
    ) -> None:
        self.on_loss()
        old.replicas = []
        new.promote()
        self.master, self.replica = new, old
        for sentinel in self.sentinels:  # one may name the old master a little longer
            self.world.after(chance(0.0, 2.0), self._name, sentinel)
        self.world.after(chance(0.1, DEMOTION_MAX), self._demote, old, how)

    def _name(self, sentinel: Sentinel) -> None:
        sentinel.master = self.master

    def _demote(self, old: RedisServer, how: str) -> None:
        if how == "lost":
            old.restart("all")
        old.follow(self.master)
        self._is_failing_over = False
