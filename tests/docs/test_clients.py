"""The table of what the tests of libraries ask: its tests exist, and run with these libraries."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.imports import ROOT

LIBRARIES = ("js", "python", "go")
ALL = "test_sdks"
"""Its tests run with each library."""


class Row(NamedTuple):
    asked: str
    libraries: list[str]
    module: str
    test: str


def rows() -> Iterator[Row]:
    page = (ROOT / "docs" / "clients.md").read_text()
    table = page.partition("\n| Asked | Libraries | Test |\n|---|---|---|\n")[2]
    for line in table.partition("\n\n")[0].splitlines():
        asked, libraries, test = (cell.strip() for cell in line.strip("|").split(" | "))
        found = re.fullmatch(r"`(\w+)::(\w+)`", test)
        assert found, line
        yield Row(asked, libraries.split(", "), found[1], found[2])


ROWS = list(rows())


@cache
def names_in(module: str) -> list[str]:
    tree = ast.parse((ROOT / "tests" / "live" / "second" / f"{module}.py").read_text())
    functions = (node for node in tree.body if isinstance(node, ast.AsyncFunctionDef))
    return [node.name for node in functions if node.name.startswith("test_")]


@pytest.mark.parametrize("row", ROWS, ids=[row.test for row in ROWS])
def test_row_names_a_test_and_its_libraries(row: Row) -> None:
    assert row.test in names_in(row.module)
    if row.module == ALL:
        assert row.libraries == [*LIBRARIES]
    else:
        (library,) = row.libraries
        words = f"{row.module}_{row.test}".replace("javascript", "js").split("_")
        assert next(word for word in words if word in LIBRARIES) == library


def test_each_test_of_all_libraries_has_a_row() -> None:
    assert {row.test for row in ROWS if row.module == ALL} == {*names_in(ALL)}


def test_each_row_is_asked_once() -> None:
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for row in ROWS:
        asked[row.asked] += row.libraries
    assert len({row.test for row in ROWS}) == len(ROWS)
    assert all(len(set(libraries)) == len(libraries) for libraries in asked.values())
