"""Errors that keep the service from answering, as one exception with words for operators.

And the nodes that did not answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from realtime.errors import EngineUnavailable, InternalError, NoReply, NotServing

from .engine import server_name


class Unavailable(Exception):
    """The service does not answer."""

    def __init__(
        self,
        title: str | Promise,
        advice: str | Promise,
        detail: str,
        is_engine: bool = False,
        may_be_done: bool = False,
    ) -> None:
        """
        Args:
            title: the problem in a few words.
            advice: what still works, and what to do.
            detail: the text of the error, in English, without secrets.
            is_engine: whether the server of the engine is what does not answer.
            may_be_done: whether it may have done what it was asked for, or may still do it.
        """
        super().__init__(detail)
        self.title = title
        self.advice = advice
        self.detail = detail
        self.is_engine = is_engine
        self.may_be_done = may_be_done
        self.at = time.monotonic()


@contextmanager
def answering(*, reads: bool = False) -> Iterator[None]:
    """Raise `Unavailable` for errors that keep the service from answering.

    Args:
        reads: whether the service is only read, so that nothing may be done without an answer.
    """
    try:
        yield
    except EngineUnavailable as error:
        # lazy: the error is kept for pages in other languages
        title = format_lazy(_("{server} cannot be reached"), server=server_name())
        advice = _(
            "Clients stay connected. In channels with recovery they catch up when the connection is"
            " back. Until then nothing can be published, and lists and counts are not available."
        )
        may_be_done = isinstance(error, NoReply) and not reads
        raise Unavailable(title, advice, str(error), True, may_be_done) from error
    except NotServing as error:
        title = _("This process serves no clients")
        advice = _(
            "Open the panel in a process that serves clients, or use an engine that processes"
            " share: Redis or PostgreSQL."
        )
        raise Unavailable(title, advice, str(error)) from error
    except InternalError as error:
        title = _("The service did not answer in time")
        advice = _("It may be busy. Clients stay connected. Try again in a moment.")
        raise Unavailable(title, advice, str(error)) from error


class Unanswered:
    """The nodes that did not answer a question of this process lately. Any thread may use it.

    A node that died, or hangs, counts as silent only after its heartbeats are missing for a while.
    """

    COUNTS = 10.0
    """Seconds for which it counts that a node did not answer."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def note(self, names: Iterable[str]) -> None:
        """Note that nodes with these names did not answer."""
        now = time.monotonic()
        known = {name: until for name, until in self._until.copy().items() if until > now}
        self._until = known | dict.fromkeys(names, now + self.COUNTS)

    def names(self) -> list[str]:
        """Return the names of those nodes, sorted."""
        now = time.monotonic()
        return sorted(name for name, until in self._until.items() if until > now)

    def forget(self) -> None:
        """Begin anew."""
        self._until = {}


unanswered = Unanswered()
"""Those of this process."""
