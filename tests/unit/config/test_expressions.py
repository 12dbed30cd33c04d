"""Regular expressions in options: what `$` is in them."""

from __future__ import annotations

import re

import pytest

from realtime.config.expressions import compiled


@pytest.mark.parametrize(
    ("expression", "text", "expected"),
    [
        pytest.param("^a$", "a", True, id="end"),
        pytest.param("^a$", "a\n", False, id="line break at the end"),
        pytest.param("^(a$|b$)", "b\n", False, id="inside a group"),
        pytest.param(r"^a\$", "a$", True, id="escaped"),
        pytest.param(r"^a\$$", "a$\n", False, id="behind an escaped one"),
        pytest.param(r"^a\\$", "a\\\n", False, id="behind a backslash"),
        pytest.param("^[a$]b", "$b", True, id="in a set"),
        pytest.param("^[]$]b", "$b", True, id="in a set that begins with a bracket"),
        pytest.param("^[^]$]b", "$b", False, id="in a negated set"),
        pytest.param(r"^[\]$]b", "$b", True, id="in a set with an escaped bracket"),
        pytest.param("^[a]$", "a\n", False, id="behind a set"),
        pytest.param("(?m)^a$", "a\nb", True, id="end of a line, if asked for"),
    ],
)
def test_dollar_is_the_end(expression: str, text: str, expected: bool) -> None:
    assert (compiled(expression).search(text) is not None) is expected


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(re.error):
        compiled("(")
