"""References to sections of docs/protocol.md lead to a section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "protocol.md"
FOLDERS = (
    "realtime",
    "admin_panel",
    "api",
    "messaging_project",
    "benchmarks",
    "tests",
    "docs",
)
SUFFIXES = (".py", ".js", ".lua", ".proto", ".html", ".md")

SECTION = r"\d+(?:\.\d+)?"
REFERENCE = re.compile(
    rf"docs/protocol\.md,[\s#/*-]+(?:(?:section|table)s?\s+)?({SECTION}(?:(?:,|\s+and|\s+to)[\s#/*-]+{SECTION})*)"
)
"""One section or several of them: "3.7", "2.2 to 2.5, 2.8 and 2.9". A line may end in between."""


def sections() -> set[str]:
    headings = re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", PAGE.read_text(), re.MULTILINE)
    return set(headings)


def references(text: str) -> set[str]:
    """The sections that a text refers to."""
    found = REFERENCE.findall(text)
    return {section for listed in found for section in re.findall(SECTION, listed)}


def sources() -> list[Path]:
    return sorted(
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and "node_modules" not in path.parts
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See docs/protocol.md, 3.7.", {"3.7"}),
        ("(docs/protocol.md, 9)", {"9"}),
        ("docs/protocol.md, 2.2 to 2.5, 2.8 and 2.9.", {"2.2", "2.5", "2.8", "2.9"}),
        ("docs/protocol.md, tables 1.2 and 1.3;", {"1.2", "1.3"}),
        ("# docs/protocol.md,\n    # 14.2", {"14.2"}),
        ("docs/protocol.md, 3.12, and docs/protocol.md, 6.4", {"3.12", "6.4"}),
        ("see docs/protocol.md", set()),
    ],
)
def test_references_are_found(text: str, expected: set[str]) -> None:
    assert references(text) == expected


def test_references_to_the_protocol_lead_to_a_section() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {section}"
        for path in sources()
        if path != Path(__file__)
        for section in references(path.read_text()) - sections()
    }
    assert not missing


def test_sections_that_the_page_mentions_exist() -> None:
    mentioned = re.findall(rf"[Ss]ections? ({SECTION})", PAGE.read_text())
    assert mentioned
    assert set(mentioned) <= sections()


def test_sections_are_in_order() -> None:
    headings = re.findall(r"^#+ (\d+)(?:\.(\d+))?", PAGE.read_text(), re.MULTILINE)
    numbers = [(int(section), int(part or 0)) for section, part in headings]
    assert numbers == sorted(set(numbers))
