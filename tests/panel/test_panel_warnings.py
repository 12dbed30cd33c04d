"""What the overview warns of, and what it sums up."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from admin_panel.health import SLOW_ROUND_TRIP, node_problems, round_trip_problems
from admin_panel.pages.overview import totals_of


class Node(NamedTuple):
    """What the overview reads of a node."""

    name: str = "one"
    version: str = "1.0"
    num_clients: int = 10
    num_users: int = 5
    num_channels: int = 2
    last_seen_seconds: float = 1.0
    alive: bool = True
    uid: str = "uid"
    loop_lag: float = 0.0


FINE = Node()
GONE = Node(name="two", version="0.9", last_seen_seconds=12.6, alive=False)

WARNINGS: dict[str, tuple[list[Any], float | None, list[str]]] = {
    "all is well": ([FINE, Node(name="two")], 0.001, []),
    "memory engine": ([FINE], None, []),
    "no node": ([], 0.001, ["No node is running."]),
    "Redis at the limit": ([FINE], SLOW_ROUND_TRIP, []),
    "slow Redis": ([FINE], 0.0834, ["Redis is slow: a round trip takes 83 ms."]),
    "silent node, its version no matter": (
        [FINE, GONE],
        0.001,
        ["Node two has been silent for 12 seconds."],
    ),
    "different versions": (
        [FINE, Node(name="two", version="0.9")],
        0.001,
        ["The nodes run 2 different versions: 0.9, 1.0."],
    ),
}


@pytest.mark.parametrize(("nodes", "round_trip", "expected"), WARNINGS.values(), ids=WARNINGS)
def test_overview_warns_of(nodes: list[Any], round_trip: float | None, expected: list[str]) -> None:
    problems = [*node_problems(nodes), *round_trip_problems(round_trip)]

    assert [problem.text for problem in problems] == expected


def test_node_that_is_gone_is_in_no_sum() -> None:
    nodes: list[Any] = [FINE, Node(name="three", num_clients=1), GONE]

    assert totals_of(nodes) == (2, 1, 11, 10, 4)
