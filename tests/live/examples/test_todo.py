"""The to-do list: what makes it live is few lines, and without them it is a plain page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.live.examples.sites import EXAMPLES, Example

MOST_LINES = {".py": 12, ".html": 6}
PAGE = "todo/templates/todo/page.html"
MARK = re.compile(r"(\{# live #\}|# live)$")


def marked(ending: str) -> list[str]:
    return [
        line
        for path in (EXAMPLES / "todo").rglob(f"*{ending}")
        for line in path.read_text().splitlines()
        if MARK.search(line)
    ]


@pytest.mark.parametrize("ending", MOST_LINES)
def test_few_lines_make_a_page_live(ending: str) -> None:
    assert 0 < len(marked(ending)) <= MOST_LINES[ending]


def test_it_has_no_javascript_of_its_own() -> None:
    names = {path.suffix for path in (EXAMPLES / "todo").rglob("*") if path.is_file()}
    assert ".js" not in names
    assert "<script>" not in (EXAMPLES / "todo" / PAGE).read_text()


def test_without_these_lines_it_is_a_plain_page(tmp_path: Path) -> None:
    example = Example("todo", tmp_path)
    for path in [*example.directory.rglob("*.py"), *example.directory.rglob("*.html")]:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not MARK.search(line.rstrip())))
    done = example.manage("test", "todo.tests.TodoTest.test_items_are_added_turned_and_removed")
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\{% (end)?(live|realtime)", (example.directory / PAGE).read_text())
