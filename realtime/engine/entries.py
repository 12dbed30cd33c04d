"""Values in a server of the engine that no node wrote: as errors, or left out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from realtime.errors import EngineUnavailable

logger = logging.getLogger("realtime.engine")

R = TypeVar("R")
T = TypeVar("T")


@contextmanager
def decoding(server: str, what: str) -> Iterator[None]:
    """Decode values within this block. Serializers and decoders raise all kinds of exceptions.

    Args:
        server: keeps the values, for the error.
        what: one of them, for the error.

    Raises:
        EngineUnavailable: no node wrote such a value.
    """
    try:
        yield
    except Exception as error:
        raise EngineUnavailable(
            f"{server} has {what} that cannot be decoded ({type(error).__name__})"
        ) from error


def decodable(names: Iterable[bytes], decode: Callable[[bytes], str]) -> list[str]:
    """Return names that were taken out of a list, without those that no node wrote.

    They are gone, so an error would lose the others.
    """
    found = []
    for name in names:
        with suppress(UnicodeDecodeError):
            found.append(decode(name))
    return found


class Entries:
    """Decodes rows that are read again and again. One that no node wrote must not hide others."""

    def __init__(self, what: str, question: str) -> None:
        """
        Args:
            what: one of them, for the log.
            question: what the reader of the log should look at.
        """
        self._about = (what, question)
        self._is_strange = False
        """Whether a row could not be decoded: logged once."""

    def decoded(self, rows: Iterable[R], decode: Callable[[R], T]) -> list[T]:
        """Return the entries in rows, without those that cannot be decoded."""
        entries = []
        for row in rows:
            try:
                entries.append(decode(row))
            except Exception as error:
                if not self._is_strange:
                    logger.error(
                        "An entry is left out, because it cannot be decoded: %s. %s (%s)",
                        *self._about,
                        type(error).__name__,
                    )
                self._is_strange = True
        return entries
