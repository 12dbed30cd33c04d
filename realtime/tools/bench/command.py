"""bench: how fast a running service is, measured from several processes."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from django.core.management.base import CommandError, CommandParser

from realtime import tokens
from realtime.config import sources
from realtime.tools.base import CommandResult, Options, SubCommand, cut, number
from realtime.tools.bench import reference
from realtime.tools.bench.connection import BenchConnection, ConnectionRefused, Place
from realtime.tools.bench.results import ReceivedCounts
from realtime.tools.calls import call_remote
from realtime.tools.remote import Remote, Unreachable

MAX_CONNECTIONS, MAX_RATE, MAX_SECONDS, MAX_PROCESSES = 20_000, 1000.0, 300.0, 32
DEFAULT_CONNECTIONS, DEFAULT_RATE, DEFAULT_SECONDS, DEFAULT_PROCESSES = 1000, 4.0, 10.0, 4
"""The first two are those of the reference."""
MIN = 0.001
"""The least rate, and the least seconds."""
SHOWN_FAILURES = 5
REASON_LENGTH = 200
"""Characters."""


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "addresses",
        nargs="+",
        metavar="URL",
        help="address of the running site; with several, connections are divided over them, and"
        " publications go to the first",
    )
    parser.add_argument(
        "--connections",
        type=_whole(MAX_CONNECTIONS),
        default=DEFAULT_CONNECTIONS,
        help=f"how many (default: {DEFAULT_CONNECTIONS})",
    )
    parser.add_argument(
        "--rate",
        type=_up_to(MAX_RATE),
        default=DEFAULT_RATE,
        help=f"publications in a second (default: {DEFAULT_RATE:g})",
    )
    parser.add_argument(
        "--seconds",
        type=_up_to(MAX_SECONDS),
        default=DEFAULT_SECONDS,
        help=f"how long to publish (default: {DEFAULT_SECONDS:g})",
    )
    parser.add_argument(
        "--processes",
        type=_whole(MAX_PROCESSES),
        default=min(DEFAULT_PROCESSES, os.cpu_count() or 1),
        help=f"processes that receive (default: one for each core, up to {DEFAULT_PROCESSES})",
    )
    parser.add_argument("--channel", help="where to publish (default: a new one, bench-...)")
    parser.add_argument(
        "--token",
        help="connection token of all connections (default: one for each, signed with"
        " token_hmac_secret_key)",
    )
    parser.add_argument("--yes", action="store_true", help="load hosts other than this one")


def _up_to(most: float) -> Callable[[str], float]:
    return number(float, MIN, most, f"number up to {most:g}:")


def _whole(most: int) -> Callable[[str], int]:
    return number(int, 1, most, f"number up to {most}:")


def _run(options: Options) -> CommandResult:
    remotes = [Remote(address) for address in options["addresses"]]
    _refuse_other_hosts(options)
    try:
        return _measure(options, remotes)
    except KeyboardInterrupt:
        raise CommandError("Interrupted: nothing was measured.") from None


def _refuse_other_hosts(options: Options) -> None:
    """Raise CommandError for hosts that are not this one, unless there is `--yes`."""
    hosts = [urlsplit(address).hostname or "" for address in options["addresses"]]
    others = ", ".join(cut(host, REASON_LENGTH) for host in hosts if not _is_local(host))
    if others and not options["yes"]:
        raise CommandError(f"This would load {others}, which is not this host. Add --yes.")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _measure(options: Options, remotes: list[Remote]) -> CommandResult:
    prefix = sources.current().websocket_handler_prefix
    places = [_place(remote, prefix) for remote in remotes]
    run = uuid.uuid4().hex
    channel = options["channel"] or f"bench-{run[:12]}"
    all_tokens = _tokens(options)
    for remote, place in zip(remotes, places, strict=True):
        _check(remote, place, all_tokens[0], channel)
    total = max(1, round(options["rate"] * options["seconds"]))
    task = {"places": places, "channel": channel, "run": run, "total": total}
    connections = [*enumerate(all_tokens)]
    processes = min(options["processes"], len(connections))
    with ExitStack() as stack:
        workers = [
            stack.enter_context(_worker({**task, "connections": connections[start::processes]}))
            for start in range(processes)
        ]
        opened = [_Opened(**_read(worker)) for worker in workers]
        seconds = 0.0
        if any(each.connected for each in opened):
            seconds = _publish(remotes[0], channel, run, total, options["rate"])
        received = ReceivedCounts()
        for worker in workers:
            _tell(worker, "end")
        for worker in workers:
            received.join(ReceivedCounts.decoded(_read(worker)))
    return _answer(opened, received, total if seconds else 0, seconds)


def _place(remote: Remote, path: str) -> Place:
    parts = urlsplit(remote.url(path))
    port = parts.port or (443 if remote.secure else 80)
    return Place(parts.hostname or "", port, parts.path, remote.secure)


def _tokens(options: Options) -> list[str]:
    """Return a token for each connection; "" for none."""
    number: int = options["connections"]
    if options["token"] is not None:
        return [options["token"]] * number
    if not sources.current().connection_tokens.hmac_secret_key:
        return [""] * number
    return [tokens.connection_token(f"bench-{index}") for index in range(number)]


def _check(remote: Remote, place: Place, token: str, channel: str) -> None:
    """Open one connection, and ask the server API; raises CommandError or `realtime.Error`."""
    call_remote(remote, "info", b"{}", newer=True)

    async def connect() -> None:
        (await BenchConnection.open(place, token, channel, remote.timeout)).close()

    try:
        with remote.reached():
            asyncio.run(connect())
    except Unreachable as error:
        raise CommandError(f"{error}.") from error
    except ConnectionRefused as error:
        reason = cut(str(error), REASON_LENGTH)
        raise CommandError(f"{remote} does not take the connection: {reason}.") from error


def _publish(remote: Remote, channel: str, run: str, total: int, rate: float) -> float:
    """Publish at a rate, each when the one before is answered, and return the seconds it took."""
    began = time.monotonic()
    with remote.kept_open():
        for n in range(total):
            time.sleep(max(0.0, began + n / rate - time.monotonic()))
            data = {"bench": run, "n": n, "at": time.monotonic_ns()}
            params = msgspec.json.encode({"channel": channel, "data": data})
            call_remote(remote, "publish", params, newer=True)
    return max(time.monotonic() - began, total / rate)


# the processes; see realtime.tools.bench.worker


class _Opened(NamedTuple):
    """The first answer of a process."""

    connected: int
    failures: dict[str, int]
    """Reason → how many."""
    began: float
    ended: float
    """Of the monotonic clock, which all processes share."""


_WORKER = (
    "import sys; sys.path = sys.argv[1:]; from realtime.tools.bench import worker; worker.main()"
)
"""A program whose modules are found where those of this process are."""


@contextmanager
def _worker(task: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """Run a process to the end of the `with` block. Ctrl-C does not reach it."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WORKER, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _tell(process, json.dumps(task))
        yield process
    finally:
        process.kill()
        process.communicate()


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    except BrokenPipeError:
        raise _lost() from None


def _read(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise _lost()
    value: dict[str, Any] = json.loads(line)
    return value


def _lost() -> CommandError:
    return CommandError("A process of this command has ended: out of memory?")


# the answer


def _answer(
    opened: list[_Opened], received: ReceivedCounts, published: int, seconds: float
) -> CommandResult:
    connected = sum(each.connected for each in opened)
    failures = Counter[str]()
    for each in opened:
        failures.update(each.failures)
    connecting = max(each.ended for each in opened) - min(each.began for each in opened)
    latency = {
        name: received.latency(share)
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
    }
    wrong = {
        "failed": failures.total(),
        "closed": received.closed,
        "lost": published * connected - received.deliveries,
        "twice": received.twice,
        "out_of_order": received.out_of_order,
    }
    value = {
        "connections": connected,
        "connections_per_second": connected / connecting,
        "published": published,
        "published_per_second": published / seconds if seconds else 0.0,
        "deliveries": received.deliveries,
        "deliveries_per_second": received.deliveries / seconds if seconds else 0.0,
        "latency_seconds": latency,
        **wrong,
        "times_reference": {
            "connections_per_second": connected / connecting / reference.CONNECTIONS_PER_SECOND,
            "p50": _ratio(latency["p50"], reference.P50),
            "p99": _ratio(latency["p99"], reference.P99),
        },
    }
    reasons = [
        f"  {number}: {cut(reason, REASON_LENGTH)}"
        for reason, number in failures.most_common(SHOWN_FAILURES)
    ]
    found = [f"{number} {name.replace('_', ' ')}" for name, number in wrong.items() if number]
    verdict = [] if found else ["Every publication came once, in order, to every connection."]
    text = "\n".join([*_lines(value), *reasons, *verdict])
    return CommandResult(text, value, f"Something went wrong: {', '.join(found)}." if found else "")


def _ratio(seconds: float | None, known: float) -> float | None:
    return None if seconds is None else seconds / known


def _lines(value: dict[str, Any]) -> Iterator[str]:
    times = value["times_reference"]
    yield (
        f"connected  {value['connections']:,}, {value['connections_per_second']:,.0f}/s"
        f"{_compared(times['connections_per_second'])}"
    )
    yield f"published  {value['published']:,}, {value['published_per_second']:,.1f}/s"
    yield f"delivered  {value['deliveries']:,}, {value['deliveries_per_second']:,.0f}/s"
    latencies = [
        f"{name} {seconds * 1000:.1f} ms{_compared(times.get(name))}"
        for name, seconds in value["latency_seconds"].items()
        if seconds is not None
    ]
    yield f"latency    {', '.join(latencies) or '-'}"


def _compared(times: float | None) -> str:
    return "" if times is None else f" ({times:.2g}x the reference)"


SUB_COMMANDS = (
    SubCommand(
        "bench",
        "Measure a running service: connections, latency, loss and order.",
        _add_arguments,
        _run,
        "Open connections from several processes, subscribe all of them to one channel, publish\n"
        "into it over the HTTP API, and count what comes. The reference is docs/performance.md.\n"
        "It loads hosts other than this one only with --yes. The exit status is 1\n"
        "if anything was lost, came twice or in another order, or if a connection failed.",
    ),
)
