"""Regular expressions in options: the syntax of Python's module `re`, with another `$`.

In Python `$` also matches before a line break at the end. In the reference server it does not, and
`^[a-z]+$` is meant for the whole text. So `$` is the end here, as `\\Z` is.
"""

from __future__ import annotations

import re
from functools import lru_cache

_END = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\$", re.DOTALL)
"""An escaped character or a set, which stay as they are; or the sign for the end."""


@lru_cache(maxsize=256)
def compiled(expression: str) -> re.Pattern[str]:
    """Return the compiled regular expression of an option.

    Raises:
        re.error, RecursionError, OverflowError: it is not a regular expression.
    """
    pattern = re.compile(expression)
    if pattern.flags & re.MULTILINE:  # `$` is asked for as the end of a line
        return pattern
    return re.compile(_END.sub(lambda found: found[1] or r"\Z", expression))
