"""A process that has the libraries of a server loaded and forks: `python -m tests.forking`.

Most of a server's start is the import of libraries. `processes.ForkedProcess` asks this process to
begin others, which are copies that have them already. There are three of these processes. In one,
nothing of ours is loaded: what it begins imports that from a tree of its own. The second, `python
-m tests.forking ours`, has the modules of this tree that need no settings of Django; the rest is
imported anew by each process, with its own settings. The third, `python -m tests.forking
simulation`, is ready to play the simulation.

The socket on file descriptor 0 carries requests: a JSON object with `arguments` (what follows
`python`, and the options with which this process itself was started), `environment` and
`directory`, with descriptors for its standard input, output and errors, and for its exit status.
The answer is the process ID. The status arrives as an ASCII number, -9 for SIGKILL. With `quick` in
the request, the process ends without what Python does at last: to free the modules, which are
copied for it, takes longer than many commands.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from types import ModuleType
from typing import Any

LIBRARIES = """
asgiref.server asgiref.sync asyncio autobahn.twisted autobahn.websocket.protocol channels.consumer
channels.db channels.routing channels.utils channels_redis.core concurrent.futures cryptography.x509
decimal django.conf django.contrib.admin django.contrib.auth.hashers django.contrib.auth.management
django.contrib.auth.password_validation django.contrib.auth.tokens
django.contrib.messages.middleware django.contrib.sessions.backends.db
django.contrib.sessions.middleware django.contrib.staticfiles.checks
django.contrib.staticfiles.handlers django.core.asgi django.core.handlers.asgi django.core.mail
django.core.management django.core.validators django.db django.db.backends.sqlite3.base
django.db.migrations django.db.models django.forms django.http django.middleware.cache
django.middleware.common django.template.defaultfilters django.template.defaulttags
django.template.loader_tags django.urls django.views.i18n google.protobuf.message h11 hiredis html
httpx http.client jwt logging.config msgspec multiprocessing redis redis.asyncio redis.sentinel
rest_framework ssl twisted.internet.asyncioreactor twisted.internet.endpoints twisted.internet.ssl
twisted.web.http urllib.request uvicorn uvicorn.config websockets.asyncio.server zope.interface
"""
"""None of them needs Django's settings, opens a file, starts a thread or installs a reactor."""

OURS = """
admin_panel.charts admin_panel.people admin_panel.publishing.forms admin_panel.publishing.threshold
admin_panel.publishing.typed realtime.asgi realtime.hooks.site realtime.live.html
realtime.monitoring.pending_rows realtime.operators.explaining realtime.operators.service_activity
realtime.pages.page_config realtime.server_api.connections realtime.server_api.http_v2
realtime.server_api.publishing realtime.server_api.queries realtime.transports.servers.signals
realtime.transports.servers.uvicorn realtime.transports.servers.uvicorn_connections
realtime.transports.sockjs.websocket realtime.transports.streaming.uni_websocket
"""
"""Besides the core: modules that import much of the rest, and need as little."""

MESSAGE_LIMIT_BYTES = 1024 * 1024


def modules_to_load(loaded: list[str]) -> list[str]:
    """Return the modules that the processes begin with.

    Args:
        loaded: `["ours"]` adds the modules of this tree that need no settings of Django;
            `["simulation"]` sets Django up, and adds the simulation.
    """
    if loaded == ["simulation"]:
        from tests.simulation.runs import begin

        begin()
        return ["tests.simulation.known_faults", "tests.simulation.shrink"]
    if loaded == ["ours"]:
        from tests.rooms import core_modules

        return [*LIBRARIES.split(), *core_modules(), *OURS.split()]
    return LIBRARIES.split()


def serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each request, until the peer is gone; returns only in the new processes.

    Returns:
        The request that this process is to carry out.
    """
    statuses: dict[int, int] = {}
    ended, wake = os.pipe()
    for end in (ended, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests.fileno(), ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            report(statuses)
        if requests.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(requests, MESSAGE_LIMIT_BYTES, 4)
        if not message:
            sys.exit()
        *streams, status = descriptors
        process = os.fork()
        if process == 0:
            become_a_process(streams)
            request: dict[str, Any] = json.loads(message)
            return request
        for stream in streams:
            os.close(stream)
        statuses[process] = status
        requests.send(str(process).encode())


def report(statuses: dict[int, int]) -> None:
    """Write the status of each process that has ended."""
    while statuses:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        os.write(statuses[process], str(os.waitstatus_to_exitcode(status)).encode())
        os.close(statuses.pop(process))


def become_a_process(streams: list[int]) -> None:
    """Leave all that belongs to the process that forked."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # a group of its own, so that what it starts can be ended with it
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


class QuickEnd:
    """Ends the process after its other functions of `atexit`, if it has a status by then."""

    def __init__(self) -> None:
        self.status: int | None = None
        atexit.register(self._end)  # before any other, so it is the last that is called

    def _end(self) -> None:
        if self.status is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)


def run(arguments: list[str], directory: str) -> None:
    """Do what `python` does with these arguments."""
    sys.argv = arguments
    if sys.argv[0] == "-m":
        sys.path[0] = directory
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif sys.argv[0] == "-c":
        sys.path[0] = ""
        sys.modules["__main__"] = program = ModuleType("__main__")
        exec(compile(sys.argv.pop(1), "<string>", "exec"), program.__dict__)
    else:
        sys.path[0] = os.path.dirname(sys.argv[0])
        runpy.run_path(sys.argv[0], run_name="__main__")


def main() -> None:
    end = QuickEnd()
    # group, not session: Ctrl-C in a terminal is for pytest, which ends this process then
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that the new process may never need
        for module in modules_to_load(sys.argv[1:]):
            importlib.import_module(module)
    gc.freeze()  # or each process would copy the pages that a collection writes to
    requests = socket.socket(fileno=os.dup(0))
    requests.send(b"ready")
    request = serve(requests)
    requests.detach()

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(write_through=True)  # as PYTHONUNBUFFERED has it
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    status: int | None = 1
    try:
        run(request["arguments"], request["directory"])
        status = 0
    except KeyboardInterrupt:
        status = None  # Python ends itself by that signal
        raise
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise
    finally:
        end.status = status if request["quick"] else None


if __name__ == "__main__":
    main()
