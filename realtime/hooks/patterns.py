"""Patterns of channel names: `chat:*`, `room:{room}`.

`*` stands for any text, also none; `{name}` for any text but none and without `:`, which the
hook finds in `request.params`. Everything else stands for itself. A pattern is about the whole
name: `chat:*` does not match the private channel `$chat:staff`.
"""

from __future__ import annotations

import re

_PART = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}|(\*+)|([{}])")


class Pattern:
    """One pattern."""

    __slots__ = ("_expression", "text")

    def __init__(self, text: str) -> None:
        """
        Raises:
            ValueError: the pattern is empty, a name occurs twice, or braces hold no name.
        """
        if not text:
            raise ValueError("an empty pattern matches no channel")
        self.text = text
        expression = ""
        end = 0
        for part in _PART.finditer(text):
            if part[3]:
                # taken literally it would match nothing, and what it should guard stood open
                raise ValueError(f"{text!r} is no pattern: braces hold a name, as in {{room}}")
            expression += re.escape(text[end : part.start()])
            expression += ".*" if part[2] else f"(?P<{part[1]}>[^:]+)"
            end = part.end()
        expression += re.escape(text[end:])
        try:
            self._expression = re.compile(expression, re.DOTALL)
        except re.error as error:
            raise ValueError(f"{text!r} is no pattern: {error}") from None

    def match(self, channel: str) -> dict[str, str] | None:
        """The texts of the names in a channel; None when it does not match."""
        found = self._expression.fullmatch(channel)
        return None if found is None else found.groupdict()
