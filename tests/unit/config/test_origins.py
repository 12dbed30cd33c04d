"""Origins: how much of a header is looked at, and patterns with several stars."""

from __future__ import annotations

import pytest

from realtime.config.origins import compiled, is_allowed

LONGEST = 300
"""Characters of the longest Origin that is looked at."""


def origin(length: int) -> str:
    """An Origin of this length that consists of little else than one letter."""
    return "https://" + "a" * (length - len("https://"))


@pytest.mark.parametrize(
    ("length", "expected"), [(LONGEST, True), (LONGEST + 1, False), (10_000, False)]
)
@pytest.mark.parametrize(
    "patterns",
    [["*"], ["https://*"], ["https://b", "https://a*a*a"], ["https://{b,a*}"]],
    ids=["any", "any host", "second of two", "alternatives"],
)
def test_origin_longer_than_300_characters_is_refused_whatever_the_pattern(
    patterns: list[str], length: int, expected: bool
) -> None:
    assert is_allowed(origin(length), patterns) is expected


@pytest.mark.parametrize(
    "pattern",
    ["https://*a*a*a*a*a*a*b", "*" * 50 + "b", "{*a*,*a*a*,*a*a*a*}b"],
    ids=["many stars", "stars in a row", "stars in alternatives"],
)
def test_long_origin_is_not_matched_against_a_pattern_of_several_stars(pattern: str) -> None:
    # matching it would take longer than the time limit of a test
    assert is_allowed(origin(10_000), [pattern]) is False


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 20 + "*b", "{*a*a*a*a*,*a*a*a*a*a*}{b,c*b}", "https://" + "*{a,b}" * 8 + "*c"],
    ids=["many stars", "stars in alternatives", "alternatives between stars"],
)
def test_longest_origin_is_matched_against_many_stars_in_no_time(pattern: str) -> None:
    # a regular expression that tries every length of every star would not end
    assert is_allowed(origin(LONGEST), [pattern]) is False


def test_stars_take_what_they_need_and_no_more() -> None:
    pattern = "https://*.{shop,shop-*}.*.example.{org,com}"

    for allowed in (
        "https://a.shop.b.example.org",
        "https://a.shop.shop.b.example.com",
        "https://shop.shop-1.b.c.example.org",
    ):
        assert is_allowed(allowed, [pattern])
    for refused in (
        "https://shop.b.example.org",
        "https://a.shop.example.org",
        "https://a.shop.b.example.net",
        "https://a.shop.b.example.org.evil.com:1",
    ):
        assert not is_allowed(refused, [pattern])


def test_pattern_of_more_combinations_than_anybody_means_is_refused() -> None:
    with pytest.raises(ValueError, match="1000 combinations"):
        compiled("https://" + "{a,b}" * 10)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://a.b.c.example.org", True),
        ("https://a.b.example.org:8000", False),
        ("https://example.org", False),
    ],
)
def test_several_stars_match_as_one_pattern(value: str, expected: bool) -> None:
    assert is_allowed(value, ["https://*.*.example.org"]) is expected


def test_origin_matches_a_pattern_as_a_whole_in_any_case() -> None:
    patterns = ["https://example.org", "http://*.example.org", "http://host?:80[0-9]0"]
    patterns.append("{ftp,file}://files")
    allowed = ["HTTPS://Example.ORG", "http://a.example.org", "http://a.b.example.org"]
    allowed += ["https://example.org", "http://host1:8000", "http://hostx:8090"]
    allowed += ["ftp://files", "file://files"]
    refused = ["http://example.org", "https://a.example.org", "https://example.org:8443"]
    refused += ["https://example.org.evil.net", "https://evil.net/https://example.org", "null"]
    refused += ["http://host:8000", "http://host12:8000", "http://host1:8001", "http://files"]
    assert [each for each in [*allowed, *refused] if is_allowed(each, patterns)] == allowed
    assert not is_allowed("http://example.org", [])


def test_length_is_of_no_matter_where_any_origin_is_allowed() -> None:
    assert is_allowed(origin(10_000), None) is True


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        ("https://[ab].example", "https://b.example", "https://c.example"),
        ("https://[a-c].example", "https://b.example", "https://d.example"),
        ("https://[!a-c].example", "https://d.example", "https://b.example"),
        ("https://[^a-c].example", "https://d.example", "https://b.example"),
        ("https://[]a].example", "https://].example", "https://b.example"),
        ("https://[{,}].example", "https://,.example", "https://{,}.example"),
        ("https://?.example", "https://a.example", "https://ab.example"),
        ("https://{a,{b,c}d}.example", "https://cd.example", "https://c.example"),
        ("https://a,b}.example", "https://a,b}.example", "https://a.example"),
    ],
)
def test_sets_and_alternatives(pattern: str, allowed: str, refused: str) -> None:
    assert is_allowed(allowed, [pattern])
    assert not is_allowed(refused, [pattern])


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("https://[ab", r"unclosed \["),
        ("https://[!]", r"unclosed \["),
        ("https://{a,b", "unclosed {"),
        ("https://{a,[b}", r"unclosed \["),
        ("https://[z-a]", "range z-a"),
    ],
)
def test_what_is_not_a_pattern_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as raised:
        compiled(pattern)
    assert repr(pattern) in str(raised.value)
