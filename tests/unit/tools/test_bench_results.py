"""What connections of a bench received, counted."""

from __future__ import annotations

import json

import pytest

from realtime.tools.bench.results import ReceivedCounts, Sequence


@pytest.mark.parametrize(
    ("numbers", "deliveries", "twice", "out_of_order"),
    [
        ([0, 1, 2], 3, 0, 0),
        ([0, 2], 2, 0, 0),
        ([0, 0, 1, 0], 2, 2, 0),
        ([2, 0, 1], 3, 0, 2),
        ([1, 0, 0, 1], 2, 2, 1),
    ],
)
def test_each_publication_counts_once(
    numbers: list[int], deliveries: int, twice: int, out_of_order: int
) -> None:
    received = ReceivedCounts()
    sequence = Sequence(received)
    for number in numbers:
        sequence.take(number, 0.1)
    assert received.deliveries == deliveries
    assert (received.twice, received.out_of_order) == (twice, out_of_order)


def test_latency_is_known_to_two_percent() -> None:
    received = ReceivedCounts()
    for milliseconds in range(1, 1001):
        received.add(milliseconds / 1000)
    for share in (0.001, 0.5, 0.99, 1.0):
        latency = received.latency(share)
        assert latency is not None
        assert share <= latency * 1.000001 <= share * 1.021


def test_clock_that_stands_still_is_no_error() -> None:
    received = ReceivedCounts()
    received.add(0.0)
    assert received.latency(1.0) == pytest.approx(1e-6, rel=0.03)
    assert ReceivedCounts().latency(0.5) is None


def test_processes_are_added_up_from_json() -> None:
    parts = [ReceivedCounts(), ReceivedCounts(twice=1, out_of_order=2, closed=3)]
    parts[0].add(0.5)
    parts[1].add(0.1)
    parts[1].add(0.5)

    whole = ReceivedCounts()
    for part in parts:
        whole.join(ReceivedCounts.decoded(json.loads(json.dumps(part.encoded()))))

    assert (whole.deliveries, whole.twice, whole.out_of_order, whole.closed) == (3, 1, 2, 3)
    assert sorted(whole.latencies.values()) == [1, 2]
