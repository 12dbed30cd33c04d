"""Regular expressions for names: they mean what they mean to `re`, in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.config.name_patterns import MAX_CHARACTERS, NamePattern, matches

SINGLES = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "[]a]", r"\w", r"\.", r"[\]a]", r"\x61", "{", "}", "-", "é"]
)
PLACES = st.sampled_from(["^", r"\A", r"\Z", r"\b", r"\B"])
REPEATS = st.sampled_from(
    ["*", "+", "?", "{2}", "{1,}", "{0,2}", "{,2}", "*?", "+?", "??", "{1,2}?"]
)


def longer(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.tuples(st.sampled_from(["(", "(?:", "(?P<n>"]), part).map(lambda p: f"{p[0]}{p[1]})")
    return st.one_of(
        st.tuples(part, part).map("".join),
        st.tuples(part, part).map("|".join),
        st.tuples(st.one_of(SINGLES, group), REPEATS).map("".join),
        group,
    )


EXPRESSIONS = st.recursive(st.one_of(SINGLES, PLACES, st.just("")), longer, max_leaves=8)
NAMES = st.text(alphabet="ab.-]{}\\é", max_size=6)


@given(EXPRESSIONS, NAMES, st.sampled_from(["", "(?i)", "(?s)", "(?m)"]))
def test_expression_means_what_it_means_to_re(expression: str, name: str, flags: str) -> None:
    try:
        expected = re.compile(flags + expression)
    except re.error:  # two groups of one name
        return

    assert NamePattern(flags + expression).is_in(name) is (expected.search(name) is not None)


@pytest.mark.parametrize(
    "expression",
    [
        "^(a+)+$",
        "^(a*)*$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^([a-z]+)*$",
        "^(.*a){20}$",
        "^(a?){60}a{60}$",
        "^.*.*.*.*.*.*.*x$",
        "(x+x+)+y",
    ],
)
@pytest.mark.parametrize("name", ["a" * 254 + "!", "x" * 254 + "!", "ax" * 127 + "!"])
def test_hostile_name_is_answered(expression: str, name: str) -> None:
    # `re` would not come back from most of these
    assert not NamePattern(expression).is_in(name)


@pytest.mark.parametrize(
    ("expression", "name", "expected"),
    [
        ("^[a-z0-9]+(?:-[a-z0-9]+)*$", "a-good-name-7", True),
        ("^[a-z0-9]+(?:-[a-z0-9]+)*$", "a--bad", False),
        ("^a$", "a\n", False),
        ("(?m)^a$", "a\nb", True),
        ("(?i)^ROOM-[0-9]{1,3}$", "room-42", True),
        ("^room-[0-9]{1,3}$", "room-4242", False),
        ("", "", True),
        ("b", "abc", True),
        ("^.$", "\n", False),
        ("^(a|)$", "", True),
        ("^[^:]*$", "a:b", False),
        (r"^\101$", "A", True),
    ],
)
def test_expression_of_a_site(expression: str, name: str, expected: bool) -> None:
    assert matches(expression, name) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "(?=a)a",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        r"(a)\1",
        "(?P<n>a)(?P=n)",
        "a++",
        "(?>a)",
        "(?i:a)",
        "(?x) a",
        "(a{400}){2}",
        "(((){999}){999}){999}",
        "a{600}",
        "(",
        "a**",
    ],
)
def test_expression_that_cannot_be_bounded_is_refused(expression: str) -> None:
    with pytest.raises(re.error):
        NamePattern(expression)


def test_name_that_is_very_long_never_matches() -> None:
    assert matches("^a*$", "a" * MAX_CHARACTERS)
    assert not matches("^a*$", "a" * (MAX_CHARACTERS + 1))
