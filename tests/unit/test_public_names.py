"""The names that packages load at their first use."""

from __future__ import annotations

from types import ModuleType

import pytest

import realtime
from realtime import testing


@pytest.mark.parametrize(
    ("package", "name"),
    [(package, name) for package in (realtime, testing) for name in package.__all__],
)
def test_public_name_is_there(package: ModuleType, name: str) -> None:
    assert getattr(package, name).__name__ == name


@pytest.mark.parametrize("package", [realtime, testing])
def test_other_name_is_not(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute"):
        _ = package.other
