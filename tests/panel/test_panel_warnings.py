"""What the overview warns of, and what it sums up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admin_panel.health import SLOW_ROUND_TRIP, node_problems, round_trip_problems
from admin_panel.pages.overview import totals_of
from admin_panel.service import NodeStatus

FINE = NodeStatus("uid", "one", "1.0", num_clients=10, num_users=5, num_channels=2, uptime=0)
GONE = replace(FINE, name="two", version="0.9", last_seen_seconds=12.6, alive=False)

WARNINGS: dict[str, tuple[list[NodeStatus], float | None, list[str]]] = {
    "all is well": ([FINE, replace(FINE, name="two")], 0.001, []),
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
        [FINE, replace(FINE, name="two", version="0.9")],
        0.001,
        ["The nodes run 2 different versions: 0.9, 1.0."],
    ),
}


@pytest.mark.parametrize(("nodes", "round_trip", "expected"), WARNINGS.values(), ids=WARNINGS)
def test_overview_warns_of(
    nodes: list[NodeStatus], round_trip: float | None, expected: list[str]
) -> None:
    problems = [*node_problems(nodes), *round_trip_problems(round_trip)]
    assert [problem.text for problem in problems] == expected


def test_node_that_is_gone_is_in_no_sum() -> None:
    nodes: list[NodeStatus] = [FINE, replace(FINE, name="three", num_clients=1), GONE]
    assert totals_of(nodes) == (2, 1, 11, 10, 4)
