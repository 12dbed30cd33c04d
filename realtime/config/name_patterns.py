"""Regular expressions for names that strangers choose, on RE2: the time of a search is bounded.

For `^(a+)+$` the module `re` may need hours to refuse a name of 40 characters. RE2 reads a name
once, so a search takes as many steps as the name has bytes, times the size of the expression, which
RE2 limits, too. The syntax is that of the reference server: `\\w` is ASCII, `$` is only the end of
the name, and there are no assertions that look around and no references to groups.

The package google-re2 is loaded only where an expression is set.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

PACKAGE = "django-realtime-messaging[regex]"
"""What to install where an expression is set."""
_MAX_ERROR = 200
"""Characters of an error of RE2, which repeats the expression."""


@lru_cache(maxsize=256)
def compiled(expression: str) -> Any:
    """Return the compiled expression, which has the method `search`.

    Raises:
        ImportError: google-re2 is not installed.
        re.error: RE2 refuses the expression.
    """
    # other packages have a module `re2`, too, but without Options
    import re2
    from re2 import Options

    options = Options()
    options.log_errors = False  # not to stderr: they are mistakes of options
    try:
        return re2.compile(expression, options)
    except UnicodeEncodeError:
        raise re.error("it has a lone surrogate") from None
    except re2.error as refusal:
        text = refusal.args[0].decode("utf-8", "replace")
        raise re.error(text if len(text) <= _MAX_ERROR else f"{text[:_MAX_ERROR]}...") from None


def matches(expression: str, name: str) -> bool:
    """Return whether an expression matches anywhere in a name; never in one with lone surrogates.

    Raises:
        ImportError, re.error: see `compiled`.
    """
    try:
        text = name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return compiled(expression).search(text) is not None
