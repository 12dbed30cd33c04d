"""The names that packages load at their first use."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import realtime
from realtime import testing
from tests.imports import tree_of


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


def test_type_checkers_know_every_name() -> None:
    tree = tree_of(Path(inspect.getfile(realtime)))
    [typing_only] = [node for node in tree.body if isinstance(node, ast.If)]
    known = {
        alias.asname
        for node in typing_only.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert known == set(realtime.__all__)
