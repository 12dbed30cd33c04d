"""Versions of what a channel shows: an older one is not published after a newer one."""

from __future__ import annotations

from typing import NamedTuple

MAX_EPOCH_LENGTH = 255
"""Characters of the epoch of a version."""


class Version(NamedTuple):
    """The version of what a publication shows. It belongs to the stream of the channel.

    number: 1 to `messages.UINT64_MAX`.
    epoch: the run in which numbers grow, any text. "" is any run, and the number is compared.
    """

    number: int
    epoch: str = ""

    def follows(self, last: Version | None) -> bool:
        """Return whether it is newer than the last one of its channel, or of another run."""
        return last is None or self.epoch not in ("", last.epoch) or self.number > last.number
