"""docs/glossary.md is in alphabetical order and has each word once."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def test_words_are_in_order_and_there_once() -> None:
    words = [word.lower() for word in re.findall(r"^- \*\*(.+?)\*\*", PAGE.read_text(), re.M)]
    assert words
    assert words == sorted(set(words))
