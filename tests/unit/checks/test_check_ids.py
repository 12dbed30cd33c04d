"""The ids of the system checks: each check has one, and each has a check."""

from __future__ import annotations

import inspect
import re
from collections import Counter

from realtime import checks
from tests.unit.checks.system_checks import ids_of_problems


def test_every_id_is_given_by_one_check() -> None:
    given = Counter(ids_of_problems())
    for function in (*checks.CHECKS, *checks.DATABASE_CHECKS, *checks.OF_PARTS):
        given.update(set(re.findall(r'"(realtime\.[EW][0-9]{3})"', inspect.getsource(function))))

    assert set(given.values()) == {1}
    assert sorted(given) == [
        *(f"realtime.E{number:03}" for number in range(1, 29)),
        *("realtime.E030", "realtime.E031"),
        *(f"realtime.E{number:03}" for number in range(40, 49)),
        *("realtime.E050", "realtime.E052", "realtime.E053", "realtime.E054"),
        *("realtime.E060", "realtime.E061"),
        *(f"realtime.W{number:03}" for number in range(1, 18)),
        *(f"realtime.W{number:03}" for number in range(20, 35) if number != 25),
        "realtime.W040",
        "realtime.W041",
        *("realtime.W050", "realtime.W051", "realtime.W056"),
        *(f"realtime.W{number:03}" for number in range(60, 66)),
    ]
