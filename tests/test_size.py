"""The house does not grow: each number of `size.toml` may only fall.

A number is changed by hand, and rises only with a reason in the commit that raises it.
"""

from __future__ import annotations

import tomllib

import pytest

from tests import sizes
from tests.imports import ROOT

LIMITS: dict[str, float] = tomllib.loads((ROOT / "tests/size.toml").read_text())


@pytest.fixture(scope="module")
def measured() -> dict[str, float]:
    return sizes.measured()


def test_every_number_has_a_limit(measured: dict[str, float]) -> None:
    assert LIMITS.keys() == measured.keys()


@pytest.mark.parametrize("name", LIMITS)
def test_number_is_within_its_limit(measured: dict[str, float], name: str) -> None:
    assert measured[name] <= LIMITS[name]
