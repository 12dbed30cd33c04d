"""Numbers in words."""

from __future__ import annotations

from django.utils.translation import ngettext


def duration(seconds: float) -> str:
    """A time span in its two largest units, for example "3 days, 4 hours"."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [
        (days, ngettext("%d day", "%d days", days)),
        (hours, ngettext("%d hour", "%d hours", hours)),
        (minutes, ngettext("%d minute", "%d minutes", minutes)),
        (rest, ngettext("%d second", "%d seconds", rest)),
    ]
    largest = next((i for i, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = [text % count for count, text in parts[largest : largest + 2] if count]
    return ", ".join(shown) or parts[-1][1] % 0
