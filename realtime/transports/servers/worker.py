"""daphne on a listening socket that it is given: `python -m realtime.transports.servers.worker`.

A worker of a supervisor shares its socket with other workers. It accepts connections from the start
of its node to the end of its drain. Over a second socket, to its supervisor, it says that it serves
or why it cannot. What comes from there says that another worker takes its place: it stops, and
accepts no more, for others accept those that wait. When that socket ends, the supervisor has died,
and the worker stops as after a signal.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from realtime.engine import factory
from realtime.node.node import SHUTDOWN_TIMEOUT
from realtime.serving import serving
from realtime.transports.servers import daphne
from realtime.transports.servers.accepting import Acceptor
from realtime.transports.servers.daphne_start import DAPHNE_ARGUMENTS, use_uvloop
from realtime.transports.servers.garbage_collector import freeze_gc
from realtime.transports.servers.listening import name_of

logger = logging.getLogger("realtime.supervisor")

READY = "ready {:g}"
"""What a worker says when it accepts connections, with the seconds that it needs at most to end.
Anything else is the reason why it cannot."""

NEEDS_ENGINE = (
    "--workers needs Redis or PostgreSQL. With the memory engine each process would be a service of"
    " its own, and clients of one would not get what another publishes. Set redis_url"
    " (SERVICE_REDIS_URL) or engine (SERVICE_ENGINE=postgresql), or leave --workers out."
)

ONE_ADDRESS = (
    "With --workers or --uds the service listens at one address. Leave out daphne's own options for"
    " addresses: -b, -p, -u, -e."
)


def main(arguments: Sequence[str]) -> None:
    """Serve as a worker.

    Args:
        arguments: the descriptors of the listening socket and of the socket to the supervisor, and
            the arguments of daphne's command line.
    """
    listener, supervisor = (socket.socket(fileno=int(number)) for number in arguments[:2])
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it is the supervisor's
    for own in (listener, supervisor):
        own.set_inheritable(False)  # a program that the site starts would keep the port in use
    daphne.logs_failed_start = False
    supervised = Supervised(supervisor)
    serve(listener, arguments[2:], supervised)
    sys.exit(supervised.status)


class Alone:
    """A process without a supervisor. It serves the site also where the service cannot start."""

    def begin(self, stop: Callable[[], None], leave: Callable[[], None]) -> None:
        """Begin to look at whether the process has to stop, or to leave the port to others."""

    def end(self) -> None:
        """Look no more: the process stops."""

    def refusal(self) -> str | None:
        """Return why the process must not serve; None if it may."""
        return None

    def started(self, failure: str | None) -> bool:
        """Return whether to serve, where the service has started or failed to."""
        return True


class Supervised(Alone):
    """A worker, and what it says to its supervisor."""

    def __init__(self, supervisor: socket.socket) -> None:
        self._supervisor = supervisor
        self.status = 0
        """Exit status of the process."""

    def begin(self, stop: Callable[[], None], leave: Callable[[], None]) -> None:
        loop = asyncio.get_event_loop()
        self._supervisor.setblocking(False)

        def look() -> None:
            self.end()
            if _has_word(self._supervisor):
                leave()
                return
            logger.error("The supervisor has died, so this worker stops")
            stop()

        loop.add_reader(self._supervisor, look)

    def end(self) -> None:
        asyncio.get_event_loop().remove_reader(self._supervisor)

    def refusal(self) -> str | None:
        return None if factory.is_shared(serving.config()) else NEEDS_ENGINE

    def started(self, failure: str | None) -> bool:
        message = failure
        if message is None:
            message = READY.format(serving.config().drain_seconds + SHUTDOWN_TIMEOUT)
        try:
            self._supervisor.send(message.encode())
        except OSError:
            return False
        self.status = int(failure is not None)
        return failure is None


def serve(listener: socket.socket, arguments: Sequence[str], supervision: Alone) -> None:
    """Serve an application on a socket until a signal ends it.

    Args:
        listener: a listening socket.
        arguments: of daphne's command line, without where to listen.
    """
    use_uvloop()
    cli: Any = importlib.import_module("daphne.cli")
    reactor: Any = importlib.import_module("twisted.internet.reactor")

    class Server(cli.Server):  # type: ignore[misc]
        """daphne's server, which listens when the service has started."""

        def run(self) -> None:
            if len(self.endpoints) > 1:  # an endpoint with TLS would be served without it
                sys.exit(ONE_ADDRESS)
            self.endpoints: list[str] = []
            reactor.callWhenRunning(lambda: asyncio.ensure_future(self._begin()))
            super().run()

        acceptor: Acceptor | None = None

        async def _begin(self) -> None:
            supervision.begin(self.stop, self._leave)
            reactor.addSystemEventTrigger("before", "shutdown", supervision.end)
            failure = await start(supervision)
            if not supervision.started(failure):
                self.stop()
                return
            freeze_gc()
            logger.info("Listening on %s", name_of(listener))
            self.acceptor = Acceptor(listener, self._adopt)

        def _leave(self) -> None:
            if self.acceptor is not None:
                self.acceptor.close()
            self.stop()

        def _adopt(self, descriptor: int) -> None:
            reactor.adoptStreamConnection(descriptor, listener.family, self.http_factory)

    interface = cli.CommandLineInterface()
    interface.server_class = Server
    interface.run(["--fd", str(listener.fileno()), *DAPHNE_ARGUMENTS, *arguments])


def _has_word(supervisor: socket.socket) -> bool:
    try:
        return bool(supervisor.recv(1))
    except OSError:
        return False


async def start(supervision: Alone) -> str | None:
    """Start the service. Return why it must not, or could not; None if it has started."""
    try:
        if (refusal := supervision.refusal()) is not None:
            return refusal
        await serving.start()
    except Exception as error:
        if (reason := serving.reason_of(error)) is not None:
            return reason
        logger.error("Could not start the real-time service", exc_info=error)
        return repr(error)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
