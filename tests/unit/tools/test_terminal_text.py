"""What commands write to a terminal: clients choose much of it."""

from __future__ import annotations

import json

import msgspec
import pytest

from realtime.tools.base import escape_json_for_terminal


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x7f", "\x9b2J", "\u202eabc", "a\u2028b", "\U000e0001", '"\\\n', "é 😀"]
)
def test_json_for_a_terminal_has_no_control_characters_and_the_same_value(text: str) -> None:
    written = escape_json_for_terminal(msgspec.json.encode({text: [text]}).decode())
    assert written.isprintable()
    assert json.loads(written) == {text: [text]}
