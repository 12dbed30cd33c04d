"""Counters of one process, since its start."""

from __future__ import annotations


class Counters:
    """Numbers that only grow.

    Threads count without a lock, which would cost every publication more than a count that is
    sometimes lost.
    """

    __slots__ = ("delivered", "published")

    def __init__(self) -> None:
        self.published = 0
        """Publications made in this process."""
        self.delivered = 0
        """Publications pushed to clients, counted once for each client."""
