"""The code blocks of a documentation page, by the names that comments before them give."""

from __future__ import annotations

import re
from functools import cache

from tests.server import ROOT

STEP = re.compile(r"^<!-- step: ([\w-]+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@cache
def steps(page: str) -> dict[str, str]:
    """Name → code, for the named blocks of a page in docs/, in their order."""
    found = STEP.findall(read(page))
    names = [name for name, _ in found]
    assert len(set(names)) == len(names), f"two blocks of {page} have the same name: {names}"
    return dict(found)


def fences(page: str) -> int:
    """How many code blocks a page has, named or not."""
    return len(re.findall(r"^```\w+$", read(page), re.MULTILINE))


def read(page: str) -> str:
    return (ROOT / "docs" / page).read_text()
