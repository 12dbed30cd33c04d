"""What one request asks of the service, recorded for the developer who looks at it.

A tool, such as the panel for django-debug-toolbar, sets `recorder` while it handles a request. Work
that belongs to no such request finds None there: that look is all it pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

P = TypeVar("P", bound=Sequence[Any])


class RequestRecorder(Protocol):
    """Records what it is given. A publication is a `NewPublication` and its channel's options."""

    def waits(self, publications: Sequence[tuple[Any, Any]], until: str) -> None:
        """Publications are not sent yet.

        Args:
            until: "commit" of a transaction, or "row": a row of the database keeps them.
        """

    def sending(
        self, publications: Sequence[tuple[Any, Any]]
    ) -> AbstractContextManager[Callable[[P], P]]:
        """Send publications within this block; call what it yields with their outcomes."""

    def positions(self, found: Mapping[str, tuple[int, str] | None]) -> None:
        """The page asked for positions of channels; None: unknown."""

    def token(self, claims: Mapping[str, Any]) -> None:
        """A token with these claims was signed."""


recorder: ContextVar[RequestRecorder | None] = ContextVar("realtime_recorder", default=None)
"""Of the request in work."""
