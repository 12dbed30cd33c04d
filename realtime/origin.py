"""The origin check of handshakes: option `allowed_origins`.

Patterns are globs over the whole lower-cased Origin (`scheme://host[:port]`): `*` is any
run of characters, dots included, `?` one character, `[..]` a set, `{a,b}` alternatives.

Beyond the spec: as Centrifugo 2.8; requests without an Origin header are not from
browsers and pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

ORIGIN_MAX_LENGTH = 300
"""A scheme, a host of 253 characters and a port; patterns with several stars are slow on more."""


def is_allowed(origin: str | None, patterns: Iterable[str] | None) -> bool:
    """Whether a handshake with this Origin header may go on. No patterns given: any may."""
    if patterns is None or origin is None:
        return True
    if len(origin) > ORIGIN_MAX_LENGTH:
        return False
    origin = origin.lower()
    return any(_compile(pattern).fullmatch(origin) for pattern in patterns)


def check_pattern(pattern: str) -> None:
    """Refuse what is not a glob.

    Raises:
        ValueError
    """
    _compile(pattern)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression."""
    parts: list[str] = []
    position, depth = 0, 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        match character:
            case "*":
                # one for a run of them, so that matching stays fast
                parts.append(".*")
                position += len(pattern[position:]) - len(pattern[position:].lstrip("*"))
            case "?":
                parts.append(".")
            case "[":
                end = pattern.find("]", position + 1)
                if end < 0:
                    raise ValueError(f"unclosed [ in {pattern!r}")
                inside = pattern[position:end].replace("\\", "\\\\").replace("[", "\\[")
                if inside.startswith("!"):
                    inside = "^" + inside[1:]
                parts.append(f"[{inside}]")
                position = end + 1
            case "{":
                depth += 1
                parts.append("(?:")
            case "}" if depth:
                depth -= 1
                parts.append(")")
            case "," if depth:
                parts.append("|")
            case _:
                parts.append(re.escape(character))
    if depth:
        raise ValueError(f"unclosed {{ in {pattern!r}")
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a pattern: {error}") from None
