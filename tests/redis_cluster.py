"""A Redis Cluster of our own: primaries that share the slots, and maybe a replica for each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from realtime.redis.slots import SLOTS
from tests.redis_server import RedisServer
from tests.server import wait_until

TIMEOUT = 30.0
NODE_TIMEOUT = 1000
"""Milliseconds after which the others promote the replica of a primary that does not answer."""


class RedisCluster:
    """Servers of one cluster."""

    def __init__(self, directory: Path, primaries: int = 3, replicas: int = 0, **options: Any):
        """
        Args:
            directory: of which each server gets a part.
            primaries: servers among which the slots are divided evenly.
            replicas: of each primary.
            options: of every server, such as `password`.
        """
        self.arguments = (
            *("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT)),
            *("--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"),
            *options.pop("arguments", ()),
        )
        self.servers = [
            RedisServer(directory / str(number), arguments=self.arguments, **options)
            for number in range(primaries * (1 + replicas))
        ]
        self._primaries = primaries
        self._ids: dict[str, RedisServer] = {}
        """The ID by which the others know a server."""

    @property
    def addresses(self) -> str:
        """Where all servers are, as the option wants it."""
        return ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def start(self) -> RedisCluster:
        """Start all servers, and wait until each knows who has which slots; returns itself."""
        try:
            self._start_all()
            self._form()
        except BaseException:
            self.kill()
            raise
        return self

    def _start_all(self) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(RedisServer.start, self.servers))

    def restart_empty(self) -> None:
        """Kill all servers, and start them again; each has its slots and nothing in them."""
        self.kill()
        self._start_all()
        self._until_ok()

    def make_anew(self) -> None:
        """Kill all servers, and make another cluster of them, in which others have the slots."""
        self.kill()
        for server in self.servers:
            (server.directory / "nodes.conf").unlink()
        self.servers = [*self.servers[1:], self.servers[0]]
        self.start()

    def _form(self) -> None:
        self._ids = {self.id_of(server): server for server in self.servers}
        primaries = self.servers[: self._primaries]
        for number, server in enumerate(primaries):
            first = number * SLOTS // len(primaries)
            last = (number + 1) * SLOTS // len(primaries)
            run(server, "CLUSTER", "ADDSLOTS", *range(first, last))
            run(server, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for server in self.servers[1:]:
            run(server, "CLUSTER", "MEET", "127.0.0.1", self.servers[0].port)
        self._until(lambda server: len(nodes(server)) == len(self.servers), "all know all")
        for number, server in enumerate(self.servers[self._primaries :]):
            run(server, "CLUSTER", "REPLICATE", self.id_of(primaries[number % len(primaries)]))
        self._until_ok()
        for server in self.servers[self._primaries :]:
            wait_until(
                lambda server=server: b"master_link_status:up" in run(server, "INFO"),
                TIMEOUT,
                "a replica in sync",
            )

    def _until_ok(self) -> None:
        self._until(
            lambda server: (
                b"cluster_state:ok" in run(server, "CLUSTER", "INFO")
                and sum("slave" in node for node in nodes(server))
                == len(self.servers) - self._primaries
                and sum(" connected" in node for node in nodes(server)) == len(self.servers)
            ),
            "a cluster",
        )

    def _until(self, condition: Callable[[RedisServer], bool], what: str) -> None:
        wait_until(lambda: all(map(condition, self.servers)), TIMEOUT, what)

    def id_of(self, server: RedisServer) -> str:
        """Return the ID by which the servers of the cluster know one of them."""
        return str(run(server, "CLUSTER", "MYID").decode())

    def owner(self, slot: int) -> RedisServer:
        """Return the server that has a slot, as the first living one knows."""
        for server in self.servers:
            if server.is_running:
                for first, last, (_, _, name, *_), *_ in run(server, "CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return self._ids[name.decode()]
        raise AssertionError(f"no server has slot {slot}")

    def primaries(self) -> list[RedisServer]:
        """Return the living servers that have slots."""
        return [each for each in self.servers if each.is_running and "master" in own_flags(each)]

    def until_owned(self, slot: int) -> None:
        """Wait until a living server has a slot, and all of them know."""

        def is_owned() -> bool:
            living = [each for each in self.servers if each.is_running]
            return self.owner(slot) in living and all(
                b"cluster_state:ok" in run(each, "CLUSTER", "INFO") for each in living
            )

        wait_until(is_owned, TIMEOUT, "a server with the slot")

    def planned_failover(self, slot: int) -> None:
        """Have a replica of the server of a slot take its place."""
        server = self.owner(slot)
        replica = next(
            each
            for each in self.servers
            if any("myself" in node and self.id_of(server) in node for node in nodes(each))
            and each is not server
        )
        run(replica, "CLUSTER", "FAILOVER")
        wait_until(lambda: self.owner(slot) is replica, TIMEOUT, "the replica with the slot")

    def move(self, slot: int, target: RedisServer) -> None:
        """Move a slot with its keys to another server, as `redis-cli --cluster reshard` does."""
        source = self.owner(slot)
        self.begin_move(slot, target)
        self.move_keys(slot, source, target)
        self.end_move(slot, target)

    def begin_move(self, slot: int, target: RedisServer) -> None:
        """Let the server of a slot ask for keys that it has no more at another one."""
        source = self.owner(slot)
        run(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self.id_of(source))
        run(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self.id_of(target))

    def move_keys(self, slot: int, source: RedisServer, target: RedisServer) -> None:
        """Move the keys of a slot, one by one."""
        while keys := run(source, "CLUSTER", "GETKEYSINSLOT", slot, 100):
            for key in keys:
                password = ("AUTH", target.password) if target.password else ()
                run(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 5000, *password)

    def end_move(self, slot: int, target: RedisServer) -> None:
        """Tell all primaries that the slot belongs to another server now."""
        others = [server for server in self.primaries() if server is not target]
        for server in (target, *others):
            run(server, "CLUSTER", "SETSLOT", slot, "NODE", self.id_of(target))

    def kill(self) -> None:
        """End all servers."""
        for server in self.servers:
            server.kill()


def run(server: RedisServer, *command: str | int | bytes) -> Any:
    """Send one command to a server over a connection of its own, and return the reply."""
    with server.client() as client:
        connection = client.connection_pool.get_connection()
        try:
            connection.send_command(*command)
            return connection.read_response()
        finally:
            client.connection_pool.release(connection)


def nodes(server: RedisServer) -> list[str]:
    """Return the lines in which a server describes those that it knows."""
    return list(run(server, "CLUSTER", "NODES").decode().splitlines())


def own_flags(server: RedisServer) -> str:
    """Return what a server says it is: "myself,master" or "myself,slave"."""
    return next(node.split()[2] for node in nodes(server) if "myself" in node)
