"""What holds for each example: its own tests, its size, and the files that all of them share."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.live.examples.sites import EXAMPLES, NAMES, Example

SHARED = ("manage.py", "asgi.py", "csp.py", "{name}/static/{name}/base.css")
"""An example is for copying, so each has these files itself; they are the same everywhere."""

MOST_LINES = {".py": 150, ".js": 120}
"""Ending → lines of an example that are not blank, without those files and the tests."""


@pytest.fixture(scope="module")
def tested(
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, subprocess.CompletedProcess[str]]:
    """What came of the tests of each example, which ran side by side."""
    directory = tmp_path_factory.mktemp("examples")
    with ThreadPoolExecutor(len(NAMES)) as pool:
        done = pool.map(lambda name: Example(name, directory).manage("test"), NAMES)
        return dict(zip(NAMES, done, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_tests_of_an_example_pass(
    name: str, tested: Mapping[str, subprocess.CompletedProcess[str]]
) -> None:
    done = tested[name]
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Ran [1-9]\d* tests", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", MOST_LINES)
def test_example_is_small(name: str, ending: str) -> None:
    lines = [
        line
        for path in (EXAMPLES / name).rglob(f"*{ending}")
        if path.name not in (*SHARED, "tests.py") and "migrations" not in path.parts
        for line in path.read_text().splitlines()
    ]
    assert len([line for line in lines if line.strip()]) <= MOST_LINES[ending]


@pytest.mark.parametrize("file", SHARED)
def test_shared_file_is_the_same_in_all_examples(file: str) -> None:
    texts = {(EXAMPLES / name / file.format(name=name)).read_text() for name in NAMES}
    assert len(texts) == 1
