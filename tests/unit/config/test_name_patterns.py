"""Regular expressions in options: for names, by RE2, and for everything else."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest

from realtime.config import expressions
from realtime.config.name_patterns import compiled, matches
from realtime.config.reader import read


@pytest.mark.parametrize(
    "expression",
    [
        *("^(a+)+$", "^(a*)*$", "^(a|a)*$", "^(a|aa)+$", "^([a-z]+)*$", "^(.*a){20}$"),
        *("^(a?){60}a{60}$", "^.*.*.*.*.*.*.*x$", "(x+x+)+y"),
    ],
)
@pytest.mark.parametrize("name", ["a" * 254 + "!", "x" * 254 + "!", "ax" * 127 + "!"])
def test_hostile_name_is_answered(expression: str, name: str) -> None:
    # `re` would not come back from most of these
    assert not matches(expression, name)


@pytest.mark.parametrize(
    ("expression", "name", "expected"),
    [
        ("^[a-z0-9]+(?:-[a-z0-9]+)*$", "a-good-name-7", True),
        ("^[a-z0-9]+(?:-[a-z0-9]+)*$", "a--bad", False),
        ("^a$", "a\n", False),
        (r"^a\z", "a\n", False),
        ("(?m)^a$", "a\nb", True),
        ("(?i)^ROOM-[0-9]{1,3}$", "room-42", True),
        ("^room-[0-9]{1,3}$", "room-4242", False),
        ("^(?P<kind>a|b)$", "b", True),
        ("b", "abc", True),
        ("^.$", "\n", False),
        ("^.$", "é", True),
        (r"^\w$", "é", False),
        (r"^\pL$", "é", True),
        ("^(a|)$", "", True),
        ("^[^:]*$", "a:b", False),
        ("^a\x00b$", "a\x00b", True),
        ("^.*$", "\ud800", False),
    ],
)
def test_expression_of_a_site(expression: str, name: str, expected: bool) -> None:
    assert matches(expression, name) is expected


@pytest.mark.parametrize(
    "expression",
    [
        *("(?=a)a", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?P<n>a)(?P=n)", "a++", "(?>a)"),
        *("(?x) a", r"a\Z", "(((){999}){999}){999}", "a{1001}", r"(\pL{30}){30}", "("),
        *("(" * 200_000, "a**", "\ud800"),
    ],
    ids=lambda expression: ascii(expression[:30]),
)
def test_expression_that_re2_refuses_is_a_mistake(expression: str) -> None:
    with pytest.raises(re.error) as refused:
        compiled(expression)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("place", ["top level", "namespace"])
@pytest.mark.parametrize("other", [None, ModuleType("re2")], ids=["none", "another package"])
def test_expression_needs_its_package(
    place: str, other: ModuleType | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", other)
    given: dict[str, object] = {"channel_regex": "^a$"}
    if place == "namespace":
        given = {"namespaces": [{"name": "chat", **given}]}

    [problem] = read(given)[1]

    assert problem.id == "E044"
    assert "pip install" in (problem.hint or "")
    assert read({})[1] == []


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
    assert (expressions.compiled(expression).search(text) is not None) is expected


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(re.error):
        expressions.compiled("(")
