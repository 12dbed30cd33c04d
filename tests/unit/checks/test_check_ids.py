"""The ids of the system checks: each check has one, and each has a check."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from typing import Any

import pytest

from realtime import checks
from realtime.checks.options import OPTION_ERRORS
from realtime.config import nested, reader, redis_options, rules, sources


def test_every_rule_has_an_id_of_its_own() -> None:
    assert len(set(OPTION_ERRORS.values())) == len(OPTION_ERRORS)


@pytest.mark.parametrize("module", [nested, reader, redis_options, rules, sources])
def test_every_rule_that_is_reported_has_an_id(module: Any) -> None:
    tree = ast.parse(inspect.getsource(module))
    reported = {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "Problem"
        and isinstance(call.args[0], ast.Constant)
    }

    assert reported
    assert reported <= set(OPTION_ERRORS)


def test_every_id_is_given_by_one_check() -> None:
    given = Counter(OPTION_ERRORS.values())
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
