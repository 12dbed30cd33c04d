"""Python processes that tests start, begun by a fork where that is right.

A process is forked from one that has the libraries loaded (`tests/forking.py`), which takes a third
of the time. It is begun as usual where the fork does not work, and where Python itself is given
options: on its command line or by environment variables.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol

ROOT = Path(__file__).resolve().parent.parent


STRICT = ("-X", "dev", "-W", "error")
"""Options of Python with which a program fails for what it would only be warned of."""


HASH_SEED = "PYTHONHASHSEED"
"""Environment variable: a process of another seed is forked from one that has this seed."""


class Process(Protocol):
    """What tests use of a `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def terminate(self) -> None: ...


def start_python(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    streams: tuple[IO[bytes], IO[bytes], IO[bytes]],
    *,
    quick: bool = False,
) -> Process:
    """Start a Python process that leads a group of its own.

    Args:
        arguments: what follows `python`.
        environment: all of it.
        streams: its standard input, output and errors.
        quick: whether it may end without freeing its modules; it does not with `STRICT`.
    """
    if can_fork(arguments, environment):
        return ForkedProcess(arguments, directory, environment, streams, quick=quick)
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=directory,
        env=environment,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def run_python(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    *,
    stdin: str = "",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a Python process to its end.

    Args:
        arguments: what follows `python`.
        environment: all of it.
        timeout: seconds.

    Raises:
        subprocess.TimeoutExpired: it ran for longer, and was killed.
    """
    with TemporaryFile() as given, TemporaryFile() as output, TemporaryFile() as errors:
        given.write(stdin.encode())
        given.seek(0)
        streams = given, output, errors
        process = start_python(arguments, directory, environment, streams, quick=True)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        for stream in (output, errors):
            stream.seek(0)
        written = [stream.read().decode() for stream in (output, errors)]
    return subprocess.CompletedProcess(["python", *arguments], status, *written)


def can_fork(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Tell whether Python would start as it did here, to run a module or a file."""

    def of_python(variables: Mapping[str, str]) -> dict[str, str]:
        return {
            name: value
            for name, value in variables.items()
            if name.startswith("PYTHON") and name not in ("PYTHONUNBUFFERED", HASH_SEED)
        }

    _, arguments = split(arguments)
    is_plain = arguments[0] in ("-m", "-c") or not arguments[0].startswith("-")
    is_same = of_python(environment) == of_python(os.environ)
    return sys.platform == "linux" and is_plain and is_same


def split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return those of STRICT that are there, and the other arguments of Python."""
    options = STRICT if tuple(arguments[: len(STRICT)]) == STRICT else ()
    return options, arguments[len(options) :]


def loaded_before(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return which modules of this tree a process may begin with, as `tests.forking` names them."""
    # a configuration of logging may turn off the loggers that are there already
    if directory != ROOT or "TEST_LOGGING" in environment:
        return ()
    return ("simulation",) if list(arguments[:2]) == ["-m", "tests.simulation"] else ("ours",)


class ForkedProcess:
    """A process begun by a fork; used as a `subprocess.Popen` is."""

    def __init__(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        streams: Sequence[IO[bytes]],
        *,
        quick: bool,
    ) -> None:
        options, arguments = split(arguments)
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": str(directory),
            "quick": quick and not options,
        }
        self._status, status = os.pipe()
        loaded = loaded_before(arguments, directory, environment)
        hash_seed = environment.get(HASH_SEED)
        self.pid = forking_process(options, loaded, hash_seed=hash_seed).fork(
            request, [*(stream.fileno() for stream in streams), status]
        )
        os.close(status)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status if the process has ended."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; returns the exit status.

        Raises:
            subprocess.TimeoutExpired: the process runs after `timeout` seconds.
        """
        status = self._ended(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return status

    def terminate(self) -> None:
        """Send SIGTERM, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(os.read(self._status, 32))
            os.close(self._status)
        return self.returncode


class ForkingProcess:
    """A process that forks, as the tests of this process use it."""

    def __init__(
        self, options: Sequence[str], arguments: Sequence[str], hash_seed: str | None = None
    ) -> None:
        """
        Args:
            options: options of Python.
            arguments: arguments of `tests.forking`.
            hash_seed: Python's hash seed; None leaves the environment as it is.
        """
        self._requests, requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with requests:
            self._process = subprocess.Popen(
                [sys.executable, *options, "-m", "tests.forking", *arguments],
                cwd=ROOT,
                env=os.environ if hash_seed is None else os.environ | {HASH_SEED: hash_seed},
                stdin=requests.fileno(),
            )
        assert self._requests.recv(16) == b"ready", "it did not start"
        self._one_at_a_time = threading.Lock()

    def fork(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """Ask for a process; returns its ID."""
        with self._one_at_a_time:  # tests start the servers of a cluster side by side
            socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)
            return int(self._requests.recv(16))

    def stop(self) -> None:
        self._requests.close()
        self._process.wait()


@cache
def _forking_process(
    options: tuple[str, ...], loaded: tuple[str, ...], hash_seed: str | None
) -> ForkingProcess:
    process = ForkingProcess(options, loaded, hash_seed)
    atexit.register(process.stop)
    return process


_starting = threading.Lock()


def forking_process(
    options: Sequence[str] = (), loaded: Sequence[str] = (), *, hash_seed: str | None = None
) -> ForkingProcess:
    """Return the one of this process; it is started when it is first needed.

    Args:
        options: options of Python.
        loaded: the modules of this tree that it begins with, as `tests.forking` names them.
        hash_seed: Python's hash seed; None leaves the environment as it is.
    """
    with _starting:
        return _forking_process(tuple(options), tuple(loaded), hash_seed)
