"""Examples in the documentation of hooks are those of the test site, which live tests run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from realtime import hooks

ROOT = Path(__file__).resolve().parents[2]
SITE = (ROOT / "tests" / "site" / "chat" / "realtime.py").read_text()


def examples(page: str) -> list[str]:
    """The blocks of Python in a page that register something, or import for those that do."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return [block for block in blocks if "@hooks." in block or "import" in block]


EXAMPLES = [(page, block) for page in ("hooks.md", "authentication.md") for block in examples(page)]


@pytest.mark.parametrize(
    ("page", "block"), EXAMPLES, ids=[f"{page} {n}" for n, (page, _) in enumerate(EXAMPLES)]
)
def test_example_is_at_work_in_the_test_site(page: str, block: str) -> None:
    assert block in SITE


def test_every_function_of_the_test_site_is_an_example() -> None:
    functions = [
        node.name
        for node in ast.parse(SITE).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    shown = "".join(block for _, block in EXAMPLES)
    assert functions
    assert [name for name in functions if f"def {name}(" not in shown] == []


def test_every_kind_of_hook_is_documented() -> None:
    kinds = [name for name in hooks.__all__ if name.islower()]
    page = (ROOT / "docs" / "hooks.md").read_text()
    of_answers = {"answer_end", "answer_stop"}
    of_clients = {"connect", "refresh", "info", "subscribe", "publish", "map_put", "rpc", "message"}
    assert of_answers | of_clients == set(kinds)
    assert [kind for kind in kinds if f"| `@hooks.{kind}" not in page] == []
