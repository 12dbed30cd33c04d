"""docs/testing.md: its examples are the test files of a site, and they pass there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from realtime.testing import TestClient
from tests.testing.projects import KIT, ROOT, Project

TEXT = (ROOT / "docs" / "testing.md").read_text()
EXAMPLES: dict[str, str] = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", TEXT, re.DOTALL))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write(EXAMPLES)
    return project


def number_in(*names: str) -> int:
    return sum(len(re.findall(r"def test_", EXAMPLES[name])) for name in names)


def test_every_example_is_a_file_of_the_site() -> None:
    assert len(EXAMPLES) == TEXT.count("```python")


def test_examples_for_unittest_pass(project: Project) -> None:
    output = project.run("django", "test", "chat.tests")
    assert f"Ran {number_in('chat/tests.py')} tests" in output


def test_examples_pass_with_pytest(project: Project) -> None:
    """Those for unittest, too."""
    output = project.run("pytest", *KIT, "-o", "python_files=test_*.py tests.py", "chat")
    names = ("chat/tests.py", *(name for name in EXAMPLES if "/test_" in name))
    assert f"{number_in(*names)} passed" in output


@pytest.mark.parametrize(
    "method",
    [
        name
        for name in vars(TestClient)
        if not name.startswith("_") and hasattr(TestClient, f"a{name}")
    ],
)
def test_method_of_the_client_is_documented(method: str) -> None:
    assert re.search(rf"`{method}\(", TEXT)
