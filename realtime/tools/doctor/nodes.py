"""Checks of the processes: that the engine fits their number, and that they have one version."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

import realtime
from realtime.engine import factory
from realtime.errors import EngineUnavailable
from realtime.tools.doctor.finding import DoctorCheck, Finding, fail, ok, skip, warn
from realtime.tools.doctor.service import RunningService, nodes_of

CONNECTIONS = 10
"""New connections, enough to reach every process behind one address most likely."""

ONE_PROCESS = (
    "The memory engine is for one process: publications do not reach clients of the others. Set"
    " redis_url, or engine to postgresql, or run one process (uvicorn and granian: --workers 1)."
)


def checks(service: RunningService) -> Iterator[DoctorCheck]:
    """Yield the checks of the processes, by `info` of the server API."""
    yield DoctorCheck("processes", partial(processes, service))
    yield DoctorCheck("version", partial(version, service))


def processes(service: RunningService) -> Finding:
    """Check that the processes know each other, and use the engine of these settings."""
    if not service.api_is_open:
        return skip("the server API is closed, so the processes cannot be counted")
    if service.info.status != 200:
        return skip("the server API does not answer, so the processes cannot be counted")
    listed = nodes_of(service.info)
    if not listed:
        return fail(
            "the service lists no process that serves clients",
            "It cannot read its own engine: see its log.",
        )
    if factory.is_shared(service.config):
        return _shared(service, listed)
    return _memory(service, listed)


def version(service: RunningService) -> Finding:
    """Check that all processes have the version that is installed here."""
    here, found = realtime.__version__, service.versions
    if not found:
        return skip("neither the server API nor a token made here tells the version")
    if found != {here}:
        return warn(
            f"the service has version {' and '.join(sorted(found))}, here it is {here}",
            "Restart the service after an update.",
        )
    return ok(f"the service has version {here}, as here")


def _memory(service: RunningService, listed: dict[str, str]) -> Finding:
    """With the memory engine, each process lists only itself."""
    met = dict(listed)
    for _ in range(CONNECTIONS):
        if len(met) > 1:
            break
        met |= nodes_of(service.ask("info"))
    if len(listed) > 1:
        return warn(
            f"the service has {_processes(listed)} that know each other, but the engine"
            " here is memory",
            "Give this process the options of the service (redis_url, engine), and it publishes.",
        )
    if len(met) > 1:
        return fail("several processes answer, but the engine is memory", ONE_PROCESS)
    return ok("one process, as the memory engine needs")


def _shared(service: RunningService, listed: dict[str, str]) -> Finding:
    """With a shared engine, the service and this process must list the same nodes."""
    server = factory.server_name(service.config)
    try:
        here = {node["uid"] for node in realtime.info()}
    except EngineUnavailable:
        return skip(f"{server} cannot be reached from here")
    if not here & listed.keys():
        return fail(
            f"the processes of the service are not in the {server} of these settings",
            _OTHER_OPTIONS[server],
        )
    alias = service.config.channel_layer
    layer = f" and the channel layer {alias!r}" if alias else ""
    return ok(f"{_processes(here)}, one service through {server}{layer}")


_OTHER_OPTIONS = {
    "Redis": "The service has other options: compare redis_url, redis_db, redis_prefix and"
    " SECRET_KEY, from which the prefix is made.",
    "PostgreSQL": "The service has other options: compare database, database_url and"
    " database_schema.",
}
"""Name of the server of the engine → which options may differ."""


def _processes(uids: Collection[str]) -> str:
    return "1 process" if len(uids) == 1 else f"{len(uids)} processes"
