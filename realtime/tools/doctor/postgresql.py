"""Checks of the PostgreSQL of the engine, over a connection of the engine's own kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from statistics import median
from typing import Any

from realtime.config.options import Config
from realtime.engine.postgresql import schema
from realtime.errors import EngineUnavailable
from realtime.serving import run_by_hand, serving
from realtime.tools.doctor.finding import DoctorCheck, Finding, fail, ok, warn
from realtime.tools.doctor.network import judge_clock

MIN_VERSION = 14
TRIPS = 20
SLOW = 0.005
"""Seconds of a round trip; a publication takes two."""
FEW_CONNECTIONS = 0.8
"""Share of the connections of the server above which there is little room for more nodes."""

Ask = Callable[[str], list[tuple[Any, ...]]]
"""Runs a statement and returns its rows; raises EngineUnavailable."""

_VERSION = "SELECT current_setting('server_version'), current_setting('server_version_num')::int"
_TABLES = f"SELECT has_table_privilege('{{schema}}.stream', 'INSERT'), ({schema.VERSION})"
_ROLE = "SELECT pg_is_in_recovery()"
_TIME = "SELECT extract(epoch FROM clock_timestamp())::float8"
_COMMIT = "SELECT current_setting('fsync'), current_setting('synchronous_commit')"
_CONNECTIONS = """
SELECT count(*)::int, current_setting('max_connections')::int FROM pg_stat_activity
WHERE backend_type = 'client backend'
"""


def checks(config: Config) -> Iterator[DoctorCheck]:
    """Yield the checks of the server; if it does not answer, only a failure."""
    examined = serving.engines(config).database(config)
    if examined is None:
        return
    with closing(examined) as database:

        def ask(query: str) -> list[tuple[Any, ...]]:
            return run_by_hand(database.fetch(query))

        try:
            ((text, number),) = ask(_VERSION)
        except EngineUnavailable as error:
            yield DoctorCheck("postgresql", partial(away, error))
            return
        yield DoctorCheck("postgresql", partial(version, database.address.label, text, number))
        for what, check in (
            ("role", role),
            ("tables", tables),
            ("latency", latency),
            ("commits", commits),
            ("connections", connections),
            ("clock", partial(clock, config)),
        ):
            yield DoctorCheck(f"postgresql {what}", partial(check, ask))


def away(error: EngineUnavailable) -> Finding:
    """Report a PostgreSQL that does not answer. The text of the error holds no password."""
    return fail(str(error), "Check that PostgreSQL runs, and that the options name it correctly.")


def version(label: str, text: str, number: int) -> Finding:
    """Check that it is a version that the service supports."""
    found = f"{label} has version {text}"
    if number // 10_000 < MIN_VERSION:
        return fail(found, f"The service needs version {MIN_VERSION} or later.")
    return ok(found)


def role(ask: Ask) -> Finding:
    """Check that it accepts writes."""
    ((is_replica,),) = ask(_ROLE)
    if is_replica:
        return fail("it is a replica, which accepts no writes", "Name the primary server.")
    return ok("it is a primary server")


def tables(ask: Ask) -> Finding:
    """Check that the tables of the engine are there, and that it may write to them."""
    try:
        ((may_write, version),) = ask(_TABLES)
    except EngineUnavailable as error:
        return fail(str(error), f"{schema.HINT}; or correct database_schema.")
    if not may_write:
        return fail("the user may not write to the tables", "Grant INSERT, UPDATE and DELETE.")
    if version != schema.version():
        return fail("the tables and functions are of another version", f"{schema.HINT}.")
    return ok("the tables of the engine are there")


def latency(ask: Ask) -> Finding:
    """Measure a round trip."""
    durations = []
    for _ in range(TRIPS):
        began = time.perf_counter()
        ask("SELECT 1")
        durations.append(time.perf_counter() - began)
    found = f"a round trip takes {median(durations) * 1000:.2f} ms (median of {TRIPS})"
    if median(durations) > SLOW:
        return warn(found, "Every publication takes two: see the load of PostgreSQL.")
    return ok(found)


def commits(ask: Ask) -> Finding:
    """Check that a publication is on disk when its publisher gets an answer."""
    ((fsync, synchronous),) = ask(_COMMIT)
    if fsync == "off":
        return warn(
            "fsync is off: a power cut may damage the database", "Turn fsync on in PostgreSQL."
        )
    if synchronous == "off":
        return warn(
            "synchronous_commit is off: a crash loses the last publications",
            "Turn synchronous_commit on, if publications must not be lost.",
        )
    return ok("publications are on disk when they are acknowledged")


def connections(ask: Ask) -> Finding:
    """Check that there is room for more processes: each takes up to six connections."""
    ((used, most),) = ask(_CONNECTIONS)
    found = f"{used} of {most} connections are in use"
    if used > most * FEW_CONNECTIONS:
        return warn(found, "Raise max_connections: each node takes up to six.")
    return ok(found)


def clock(config: Config, ask: Ask) -> Finding:
    """Check the clock by which presence expires, and publications have their time."""

    def read() -> float:
        ((seconds,),) = ask(_TIME)
        return float(seconds)

    return judge_clock(config, "PostgreSQL", read)
