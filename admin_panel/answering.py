"""Errors that keep the service from answering, as one exception with words for operators."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from realtime.errors import EngineUnavailable, InternalError, NotServing


class Unavailable(Exception):
    """The service does not answer."""

    def __init__(
        self, title: str | Promise, advice: str | Promise, detail: str, is_engine: bool = False
    ) -> None:
        """
        Args:
            title: the problem in a few words.
            advice: what still works, and what to do.
            detail: the text of the error, in English, without secrets.
            is_engine: whether Redis is what does not answer.
        """
        super().__init__(detail)
        self.title = title
        self.advice = advice
        self.detail = detail
        self.is_engine = is_engine
        self.at = time.monotonic()


@contextmanager
def answering() -> Iterator[None]:
    """Raise `Unavailable` for errors that keep the service from answering."""
    try:
        yield
    except EngineUnavailable as error:
        title = _("Redis cannot be reached")
        advice = _(
            "Clients stay connected. In channels with recovery they catch up when Redis is back."
            " Until then nothing can be published, and lists and counts are not available."
        )
        raise Unavailable(title, advice, str(error), is_engine=True) from error
    except NotServing as error:
        title = _("This process serves no clients")
        advice = _(
            "Open the panel in a process that serves clients, or use Redis for all processes."
        )
        raise Unavailable(title, advice, str(error)) from error
    except InternalError as error:
        title = _("The service did not answer in time")
        advice = _("It may be busy. Clients stay connected. Try again in a moment.")
        raise Unavailable(title, advice, str(error)) from error
