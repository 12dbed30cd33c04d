"""A copy of the to-do example with two lists, and its processes, which can be killed and frozen."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from tests.live.examples.sites import Example, environment
from tests.live_pages import traps
from tests.ports import free_port
from tests.processes import Process, run_python, start_python
from tests.redis_server import RedisServer
from tests.server import ListeningProcess, wait_until

FEED = """
from realtime import live
from todo.models import Item


@live.model(Item)
class LiveItem(live.Feed):
    channels = ("todo:feed",)
    fragment = "todo/item.html"

    def context(self, row):
        return {"item": row}

    @staticmethod
    def may_view(request):
        return True
"""
TRAPS = """

import traps
from realtime.pending.relay import RelayThread

traps.watch(RelayThread, "_publish")
traps.watch(RelayThread, "_settle")
"""
WRITER = Path(__file__).with_name("writer.py")
TRAP_TIMEOUT = 10.0
"""Seconds after which a trap in which no process died is taken away."""
KILLED = -signal.SIGKILL


class Writer:
    """A process that changes rows for some seconds; another one follows it when it is killed."""

    def __init__(self, directory: Path, mode: str, rate: float) -> None:
        self._directory = directory
        self._mode = mode
        self._rate = rate
        self._seed = 0
        self._until = 0.0
        self._process: Process | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115

    def begin(self, seconds: float, seed: int) -> None:
        """Begin to change rows."""
        self._until = time.monotonic() + seconds
        self._seed = 1000 * seed
        self._start()

    def _start(self) -> None:
        changes = int((self._until - time.monotonic()) * self._rate)
        self._seed += 1
        numbers = [str(changes), str(self._rate), str(self._seed)]
        with open(os.devnull, "rb") as nothing:
            self._process = start_python(
                [str(WRITER), *numbers, self._mode],
                self._directory,
                environment(),
                (nothing, self._errors, self._errors),
            )

    @property
    def is_killed(self) -> bool:
        """Whether it was killed, and no other one has followed."""
        return self._process is not None and self._process.poll() == KILLED

    def follow(self) -> None:
        """Start another one in place of the killed one."""
        self._start()

    def kill(self) -> bool:
        """Kill the process; returns whether it was running."""
        if self._process is None or self._process.poll() is not None:
            return False
        os.kill(self._process.pid, signal.SIGKILL)
        return self._process.wait(60) == KILLED

    def finish(self) -> None:
        """Wait until all changes are made."""
        if self._process is not None:
            status = self._process.wait(120)
            self._errors.seek(0)
            assert status in (0, KILLED), self._errors.read().decode()
            self._process = None

    def discard(self) -> None:
        self.kill()
        self._errors.close()


class Site:
    """Two processes serve it, and two change its rows."""

    def __init__(
        self,
        directory: Path,
        redis: RedisServer,
        *,
        rows: int,
        kept: int,
        rate: float = 50,
        feed: bool = False,
        durable: bool = False,
    ) -> None:
        """`kept`: publications of the history; `feed`: there is a list of a live model, too."""
        self.redis = redis
        self.durable = durable
        self.example = Example("todo", directory)
        self.directory = self.example.directory
        shutil.copy(traps.__file__, self.directory)
        self._configure(directory.name, kept, feed=feed)
        migrated = self.example.manage("migrate")
        assert migrated.returncode == 0, migrated.stderr
        filled = run_python(
            [str(WRITER), str(rows), "1", "0", "fill"], self.directory, environment()
        )
        assert filled.returncode == 0, filled.stderr
        self.ports = [free_port(), free_port()]
        self.servers = [self._start(port) for port in self.ports]
        modes = ("rows", "beside") if feed or durable else ("alone",)
        self.writers = [Writer(self.directory, mode, rate / len(modes)) for mode in modes]
        self.tracebacks: list[str] = []
        """What servers wrote about failures before they ended."""

    def _configure(self, prefix: str, kept: int, *, feed: bool) -> None:
        change = self.example.change
        if feed:
            (self.directory / "todo" / "realtime.py").write_text(FEED)
        page = "todo/templates/todo/page.html"
        change(page, '{% live "todo:all" %}', '{% live request.GET.list|default:"todo:all" %}')
        change("settings.py", '    "csp.content_security_policy",\n', "")  # for frames
        change("settings.py", '"history_size": 500', f'"history_size": {kept}')
        options = (
            f'    "redis_url": "{self.redis.url}",\n    "redis_prefix": "{prefix}",\n'
            # frames of one browser share six connections: streams of a fallback would take them all
            '    "sockjs_disable": True,\n'
        )
        change(
            "settings.py",
            '    "client_anonymous": True,',
            options + '    "client_anonymous": True,',
        )
        if self.durable:
            change(
                "settings.py", '    "realtime.live",', '    "realtime.live", "realtime.pending",'
            )
            change("settings.py", "**KEPT}", '"durable": True, **KEPT}')
            with (self.directory / "asgi.py").open("a") as module:
                module.write(TRAPS)

    # servers

    def _start(self, port: int) -> ListeningProcess:
        return ListeningProcess(
            ["manage.py", "runserver", "--noreload", str(port)],
            rf"development server at http://127\.0\.0\.1:({port})",
            environment(),
            cwd=self.directory,
        )

    def kill(self, number: int) -> None:
        """Kill a server, and start another one in its place."""
        server = self.servers[number]
        server.discard()
        if "Traceback" in server.log:
            self.tracebacks.append(server.log[server.log.index("Traceback") - 300 :][:4000])
        self.servers[number] = self._start(self.ports[number])

    def terminate(self, number: int) -> None:
        """Stop a server by SIGTERM, and start another one in its place."""
        self.servers[number].stop()
        self.kill(number)

    def freeze(self, number: int) -> None:
        os.kill(self.servers[number].pid, signal.SIGSTOP)

    def resume(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.servers[number].pid, signal.SIGCONT)

    # what writes and relays

    def begin_writing(self, seconds: float, seed: int) -> None:
        """Let the writers change rows for some seconds."""
        for writer in self.writers:
            writer.begin(seconds, seed)

    def finish_writing(self) -> None:
        """Wait until the writers have ended."""
        for writer in self.writers:
            writer.finish()

    def write(self, seconds: float, seed: int) -> None:
        """Have rows changed for some seconds."""
        self.begin_writing(seconds, seed)
        self.finish_writing()

    def spring(self, place: str) -> bool:
        """Have a process die at a place, and start another one; returns whether one died."""
        file = traps.trap(self.directory, place)
        file.touch()
        with suppress(AssertionError):
            wait_until(lambda: not file.exists(), TRAP_TIMEOUT)
        died = not file.exists()
        file.unlink(missing_ok=True)
        if died:
            wait_until(self._replace_killed)
        return died

    def _replace_killed(self) -> bool:
        for number, server in enumerate(self.servers):
            if not server.is_running:
                self.kill(number)
                return True
        for writer in self.writers:
            if writer.is_killed:
                writer.follow()
                return True
        return False

    def pending(self) -> int:
        """Return how many durable publications wait."""
        return self._count("SELECT count(*) FROM realtime_pending") if self.durable else 0

    def _count(self, query: str) -> int:
        with closing(sqlite3.connect(self.directory / "db.sqlite3", timeout=20)) as database:
            return int(database.execute(query).fetchone()[0])

    @property
    def changes(self) -> int:
        """How many transactions the writers have committed."""
        path = self.directory / "changes"
        return path.stat().st_size if path.exists() else 0

    def stop(self) -> None:
        for writer in self.writers:
            writer.discard()
        for number, server in enumerate(self.servers):
            self.resume(number)
            server.discard()
