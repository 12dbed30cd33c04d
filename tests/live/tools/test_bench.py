"""bench: what it finds of good and of faulty services, and how it ends."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.clusters import Cluster, presence_stats
from tests.live.tools.command import run_here
from tests.live.tools.faulty_service import Delivery, faulty_service
from tests.live.tools.going_on import GoingOn
from tests.server import Server, wait_until

SMALL = ("--connections", "6", "--processes", "2", "--rate", "50", "--seconds", "0.2")
"""Ten publications, from two processes with three connections each."""
NO_MISTAKES = {"failed": 0, "closed": 0, "lost": 0, "twice": 0, "out_of_order": 0}


def _mistakes(result: dict[str, Any]) -> dict[str, int]:
    return {name: result[name] for name in NO_MISTAKES}


def test_two_nodes_lose_nothing(shared_cluster: Cluster) -> None:
    addresses = [server.address for server in shared_cluster()]

    finished = run_here({}, "bench", *addresses, *SMALL, "--json")

    assert (finished.returncode, finished.stderr) == (0, "")
    result = json.loads(finished.stdout)
    assert (result["connections"], result["published"], result["deliveries"]) == (6, 10, 60)
    assert _mistakes(result) == NO_MISTAKES
    assert result["connections_per_second"] > 0
    assert 0 < result["published_per_second"] <= 50
    latency = result["latency_seconds"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert set(result["times_reference"]) == {"connections_per_second", "p50", "p99"}


def test_text_says_that_all_is_well(serve: Callable[..., Server]) -> None:
    finished = run_here({}, "bench", serve(server="realtime").address, *SMALL)
    assert (finished.returncode, finished.stderr) == (0, "")
    first, *_, last = finished.stdout.splitlines()
    assert first.startswith("connected  6, ")
    assert last == "Every publication came once, in order, to every connection."


def test_mistakes_of_a_service_are_found() -> None:
    ways: dict[str, Delivery] = {
        "the connection of the check": lambda n: [],
        "loses one": lambda n: [] if n == 3 else [n],
        "sends one twice": lambda n: [n, n] if n == 3 else [n],
        "sends one later, again": lambda n: [n, 3] if n == 8 else [n],
        "changes the order": lambda n: {3: [], 4: [4, 3]}.get(n, [n]),
        "closes": lambda n: {8: [8, None], 9: []}.get(n, [n]),
        "is right": lambda n: [n],
    }
    with faulty_service([*ways.values()]) as service:
        finished = run_here({}, "bench", service.address, *SMALL, "--json")

        assert finished.returncode == 1
        assert "went wrong: 1 closed, 2 lost, 2 twice, 1 out of order." in finished.stderr
        result = json.loads(finished.stdout)
        assert result["deliveries"] == 58
        assert _mistakes(result) == {
            "failed": 0,
            "closed": 1,
            "lost": 2,
            "twice": 2,
            "out_of_order": 1,
        }
        # one to ask whether it may, and one for all publications
        assert service.api_connections == 2


def test_refused_connections_are_counted_with_the_reason(serve: Callable[..., Server]) -> None:
    server = serve(client_user_connection_limit=2)
    token = run_here({}, "gentoken", "17").stdout.strip()
    finished = run_here({}, "bench", server.address, *SMALL, "--token", token)
    assert finished.returncode == 1
    # that of the check may be leaving
    assert re.search(r"^  [45]: closed with 3504: connection limit$", finished.stdout, re.MULTILINE)
    assert re.search(r"went wrong: [45] failed\.$", finished.stderr)


@pytest.mark.parametrize(
    ("number", "status", "errors"),
    [
        (signal.SIGINT, 1, "CommandError: Interrupted: nothing was measured.\n"),
        (signal.SIGKILL, -signal.SIGKILL, ""),
    ],
)
def test_its_processes_end_with_it(
    serve: Callable[..., Server],
    unique: str,
    tmp_path: Path,
    number: int,
    status: int,
    errors: str,
) -> None:
    server = serve(presence=True)
    arguments = ("bench", server.address, *SMALL, "--seconds", "300", "--channel", unique)
    with GoingOn(tmp_path, {}, *arguments) as command:
        wait_until(lambda: presence_stats(server, unique) == (6, 6))
        command.send(number)
        # which waits for the processes, too: they share its standard error
        assert command.ended() == (status, errors)
    wait_until(lambda: presence_stats(server, unique) == (0, 0))


def test_service_that_is_away_is_one_sentence() -> None:
    finished = run_here({}, "bench", "http://127.0.0.1:1")
    assert finished.returncode == 1
    assert finished.stderr == "CommandError: http://127.0.0.1:1: nothing listens there\n"


def test_refused_token_and_key_are_one_sentence(serve: Callable[..., Server]) -> None:
    server = serve()

    token = run_here({}, "bench", server.address, "--token", "x")
    key = run_here({"api_key": "another"}, "bench", server.address)

    assert (token.returncode, key.returncode) == (1, 1)
    assert token.stderr == (
        f"CommandError: {server.address} does not take the connection: closed with 3500:"
        " invalid token.\n"
    )
    assert key.stderr.startswith(f"CommandError: The server API at {server.address} answers with")
    assert key.stderr.count("\n") == 1


def test_other_hosts_are_loaded_only_when_that_is_confirmed() -> None:
    refused = run_here({}, "bench", "http://127.0.0.1:1", "http://realtime.invalid")
    confirmed = run_here({}, "bench", "http://realtime.invalid", "--yes")
    assert (refused.returncode, confirmed.returncode) == (1, 1)
    assert refused.stderr == (
        "CommandError: This would load realtime.invalid, which is not this host. Add --yes.\n"
    )
    assert "http://realtime.invalid: " in confirmed.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--connections", "0"),
        ("--connections", "20001"),
        ("--connections", "1.5"),
        ("--rate", "nan"),
        ("--seconds", "301"),
        ("--processes", "-1"),
    ],
)
def test_arguments_out_of_bounds_are_refused(arguments: tuple[str, ...]) -> None:
    finished = run_here({}, "bench", "http://127.0.0.1:1", *arguments)
    assert finished.returncode == 2
    assert f"argument {arguments[0]}: invalid number up to" in finished.stderr
