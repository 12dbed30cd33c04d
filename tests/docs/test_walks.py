"""Files that ARCHITECTURE names are there, with their functions, and no walk gets longer."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache

import pytest

from tests.imports import ROOT, tree_of

LENGTHS: Mapping[str, int] = {
    "1": 25,
    "2": 19,
    "3": 18,
    "4": 26,
    "5": 18,
    "6": 23,
}
"""Walk → the files that a reader opens. A number may only fall."""

WORDS = range(3, 9)
"""How many say what a file does."""


@cache
def walks() -> dict[str, tuple[int, dict[str, str]]]:
    """The walks: number → the length that its title says, and its files with their words."""
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Six walks\n")[2]
    found: dict[str, tuple[int, dict[str, str]]] = {}
    parts: dict[str, dict[str, str]] = {}
    for text in section.split("```")[1].strip().split("\n\n"):
        title, *lines = text.splitlines()
        walk = re.fullmatch(r"(\d)  .+: (\d+) files", title)
        assert walk, title
        files: dict[str, str] = {}
        part: dict[str, str] = {}
        for line in map(str.strip, lines):
            if line.startswith("["):
                names = re.findall(r"\[(\w+)\]", line)
                if parts.keys() >= set(names):
                    part = {}
                    for name in names:
                        files |= parts[name]
                else:
                    part = parts[names[0]] = {}
                continue
            path, words = line.split(maxsplit=1)
            assert path not in files, line
            files[path] = part[path] = words
        found[walk[1]] = int(walk[2]), files
    return found


def test_there_are_six() -> None:
    assert walks().keys() == LENGTHS.keys()


@pytest.mark.parametrize("walk", LENGTHS)
def test_files_of_a_walk_are_there(walk: str) -> None:
    _, files = walks()[walk]

    assert [path for path in files if not (ROOT / "realtime" / path).is_file()] == []


@pytest.mark.parametrize("walk", LENGTHS)
def test_each_file_of_a_walk_says_in_few_words_what_it_does(walk: str) -> None:
    _, files = walks()[walk]

    assert {path: words for path, words in files.items() if len(words.split()) not in WORDS} == {}


@pytest.mark.parametrize("walk", LENGTHS)
def test_walk_gets_no_longer(walk: str) -> None:
    said, files = walks()[walk]

    assert said == len(files) <= LENGTHS[walk]


def answers() -> list[tuple[str, str]]:
    """The answers of the table "Where is": file and function, or class."""
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Where is\n")[2]
    return re.findall(r"`([\w/]+\.py)`: `([\w.]+)`", section.partition("\n## ")[0])


def test_functions_of_where_is_are_there() -> None:
    missing = []
    for path, name in answers():
        found: ast.AST | None = tree_of(ROOT / "realtime" / path)
        for part in name.split("."):
            names = {getattr(node, "name", ""): node for node in getattr(found, "body", ())}
            found = names.get(part)
        if found is None:
            missing.append((path, name))

    assert len(answers()) >= 12
    assert missing == []
