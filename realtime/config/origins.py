"""The origin check of handshakes: option `allowed_origins`.

Patterns are matched against the whole lower-cased Origin (`scheme://host[:port]`): `*` matches
any run of characters, dots included, `?` one character, `[..]` one of a set, `[!..]` one
outside it, and `{a,b}` either alternative. Python's fnmatch does all of this but the braces.

Beyond the spec: as Centrifugo 2.8. Requests without an Origin header do not come from browsers
and pass.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

MAX_ORIGIN_LENGTH = 300
"""A scheme, a host of 253 characters and a port."""
MAX_ALTERNATIVES = 1000
"""Combinations of the alternatives in one pattern."""

# as fnmatch, a set holds at least one character, which may be its closing bracket
_TOKEN = re.compile(r"\[[!^]?+\]?+[^]]*+\]|[^][{},]+|.", re.DOTALL)
_SOURCE = re.compile(
    r"[a-z][a-z0-9+.-]*+://(?:\*\.)?[a-z0-9_-]++(?:\.[a-z0-9_-]++)*+(?::(?:\*|[0-9]++))?"
)
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)


def is_allowed(origin: str | None, patterns: Iterable[str] | None) -> bool:
    """Return whether a handshake with this Origin header may continue.

    Args:
        origin: the header, None when the request has none.
        patterns: the option; None allows every origin.
    """
    if patterns is None or origin is None:
        return True
    if len(origin) > MAX_ORIGIN_LENGTH:
        return False
    origin = origin.lower()
    return any(compiled(pattern).match(origin) for pattern in patterns)


def is_pattern(pattern: str) -> bool:
    """Return whether a pattern can be used."""
    try:
        compiled(pattern)
    except ValueError:
        return False
    return True


def frame_ancestors(pattern: str) -> list[str]:
    """Return a pattern in the words of a content security policy.

    Raises:
        ValueError: it cannot be said there. `*` may stand for the first labels of the host
            (`https://*.example.org`) or for the port.
    """
    sources = _expand(iter(_TOKEN.findall(pattern.lower())))
    if not all(map(_SOURCE.fullmatch, sources)):
        raise ValueError(f"{pattern!r} does not name a scheme and a host")
    return sources


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern as one regular expression.

    Matching is linear in the Origin, which comes from strangers: fnmatch puts the text between
    two stars into an atomic group, so it is found once and never searched for again.

    Raises:
        ValueError: a bracket or brace is not closed, a range runs backwards, or the pattern
            has more than `MAX_ALTERNATIVES` combinations of alternatives.
    """
    try:
        globs = _expand(iter(_TOKEN.findall(pattern)))
    except ValueError as error:
        raise ValueError(f"{pattern!r} is not a pattern: {error}") from None
    return re.compile("|".join(map(fnmatch.translate, globs)))


def _expand(tokens: Iterator[str], in_braces: bool = False) -> list[str]:
    """Return the globs without braces that a pattern, or the inside of its braces, stands for."""
    globs = [""]
    before_comma: list[str] = []
    for token in tokens:
        match token:
            case "[":
                raise ValueError("unclosed [")
            case "{":
                globs = _joined(globs, _expand(tokens, in_braces=True))
            case "}" if in_braces:
                return before_comma + globs
            case "," if in_braces:
                before_comma += globs
                globs = [""]
            case _:
                globs = _joined(globs, [_checked(token)])
    if in_braces:
        raise ValueError("unclosed {")
    return globs


def _joined(globs: list[str], endings: list[str]) -> list[str]:
    if len(globs) * len(endings) > MAX_ALTERNATIVES:
        raise ValueError(f"more than {MAX_ALTERNATIVES} combinations of alternatives")
    return [glob + ending for glob in globs for ending in endings]


def _checked(token: str) -> str:
    """Return a set as fnmatch reads it; other text as it is."""
    if not token.startswith("["):
        return token
    if token.startswith("[^"):
        token = "[!" + token[2:]
    for first, last in _RANGE.findall(token, 1, len(token) - 1):
        # fnmatch takes it for an empty range, and the pattern would match nothing
        if first > last:
            raise ValueError(f"bad character range {first}-{last}")
    return token
