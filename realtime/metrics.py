"""Tally: what a node published and delivered since its start."""

from __future__ import annotations


class Tally:
    """Two numbers that only grow.

    Threads of the process may count at once, without a lock: a publication that is not counted
    is nothing against what a lock would cost each of them.
    """

    __slots__ = ("delivered", "published")

    def __init__(self) -> None:
        self.published = 0
        """Publications that this process published."""
        self.delivered = 0
        """Publications pushed to clients, each counted once for every client."""
