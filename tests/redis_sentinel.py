"""A master, its replica, and the sentinel that watches both."""

from __future__ import annotations

from pathlib import Path

import redis

from tests.redis_server import RedisServer, redis_binary
from tests.server import wait_until

FAILOVER_TIMEOUT = 60.0
DOWN_AFTER = 1000
"""Milliseconds after which a master that does not answer is replaced; a busy one needs some."""


class Sentinel:
    """Three processes. `password` is that of master and replica, `sentinel_password` its own."""

    def __init__(
        self,
        directory: Path,
        *,
        master_name: str = "mymaster",
        password: str = "",
        sentinel_password: str = "",
    ) -> None:
        self.master_name = master_name
        # a sync that waits for more replicas would take five seconds
        arguments = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"]
        if password:
            arguments += ["--masterauth", password]
        self.master = RedisServer(directory / "one", password=password, arguments=arguments)
        self.replica = RedisServer(
            directory / "two",
            password=password,
            arguments=[*arguments, "--replicaof", "127.0.0.1", str(self.master.port)],
        )
        self._sentinel = _SentinelProcess(
            directory / "sentinel", master_name, self.master, sentinel_password
        )

    @property
    def address(self) -> str:
        """Where the sentinel listens: host:port."""
        return f"127.0.0.1:{self._sentinel.port}"

    def start(self) -> Sentinel:
        """Start all three, wait until the sentinel knows the replica; returns itself."""
        try:
            self.master.start()
            self.replica.start()
            wait_until(self._in_sync, FAILOVER_TIMEOUT, "a replica in sync")
            self._sentinel.start()
            wait_until(self._knows_replica, FAILOVER_TIMEOUT, "a sentinel that knows the replica")
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """End all three."""
        for process in (self._sentinel, self.master, self.replica):
            process.kill()

    def failover(self) -> None:
        """Kill the master and wait until the sentinel names the other one, which is one then.

        Afterwards `master` is the new one, and `replica` the one that was killed.
        """
        self.master.kill()
        self.master, self.replica = self.replica, self.master
        wait_until(self._names_master, FAILOVER_TIMEOUT, "a new master")

    def planned_failover(self) -> None:
        """Have the sentinel promote the replica. The old master goes on for ten seconds."""
        wait_until(self._begins_failover, FAILOVER_TIMEOUT, "a replica that can be promoted")
        self.master, self.replica = self.replica, self.master
        wait_until(self._names_master, FAILOVER_TIMEOUT, "a new master")

    def _begins_failover(self) -> bool:
        with self._sentinel.client() as client:
            try:
                client.execute_command("SENTINEL", "FAILOVER", self.master_name)
            except redis.ResponseError:  # it has not heard from the replica yet
                return False
        return True

    def _in_sync(self) -> bool:
        """A master sends writes up to a second after the replica's link is up."""
        with self.master.client() as client:
            client.set("in sync", 1, ex=1)
            return bool(client.wait(1, 100) == 1)

    def _knows_replica(self) -> bool:
        with self._sentinel.client() as client:
            replicas = client.execute_command("SENTINEL", "REPLICAS", self.master_name)
            return len(replicas) == 1

    def _names_master(self) -> bool:
        with self._sentinel.client() as client:
            address = client.execute_command(
                "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.master_name
            )
        if int(address[1]) != self.master.port:
            return False
        with self.master.client() as master:
            return bool(master.info("replication")["role"] == "master")


class _SentinelProcess(RedisServer):
    """The third process; the file that configures it is also where it keeps its state."""

    def __init__(self, directory: Path, name: str, master: RedisServer, password: str) -> None:
        super().__init__(directory, password=password)
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {directory}",
            f"sentinel monitor {name} 127.0.0.1 {master.port} 1",
            f"sentinel down-after-milliseconds {name} {DOWN_AFTER}",
            f"sentinel failover-timeout {name} 3000",
        ]
        if password:
            lines.append(f"requirepass {password}")
        if master.password:
            lines.append(f"sentinel auth-pass {name} {master.password}")
        self._config = directory / "sentinel.conf"
        self._config.write_text("\n".join(lines) + "\n")

    def command_line(self) -> list[str]:
        return [redis_binary(), str(self._config), "--sentinel"]
