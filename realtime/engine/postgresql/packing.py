"""Records as bytes, which is how PostgreSQL keeps them, and what goes wrong with foreign ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from realtime.engine.records import Message
from realtime.errors import EngineUnavailable

logger = logging.getLogger("realtime.engine")

R = TypeVar("R")
T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Message)


def text(key: bytes) -> str:
    """Return the name that a key in a table stands for; see `streams.key`.

    Raises:
        UnicodeDecodeError: no node wrote this.
    """
    return key.decode(errors="surrogatepass")


def pack(message: Message) -> bytes:
    """Return a message as bytes."""
    return _encoder.encode(message)


def unpack(data: bytes) -> Message:
    """Return the message in bytes.

    Raises:
        msgspec.DecodeError: no node wrote this.
    """
    return _decoder.decode(data)


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Decode values of PostgreSQL within this block. `what`: names one of them, for the error.

    Raises:
        EngineUnavailable: no node wrote such a value.
    """
    try:
        yield
    except Exception as error:  # decoders raise all kinds of them
        raise EngineUnavailable(
            f"PostgreSQL has {what} that cannot be decoded ({type(error).__name__})"
        ) from error


class Entries:
    """Decodes rows that are read again and again. One that no node wrote must not hide others."""

    def __init__(self, what: str) -> None:
        """`what`: names one of them, for the log."""
        self._what = what
        self._is_strange = False
        """Whether a row could not be decoded: logged once."""

    def decoded(self, rows: Iterable[R], decode: Callable[[R], T]) -> list[T]:
        """Return the entries in rows, without those that cannot be decoded."""
        entries = []
        for row in rows:
            try:
                entries.append(decode(row))
            except Exception as error:  # decoders raise all kinds of them
                if not self._is_strange:
                    logger.error(
                        "An entry is left out, because it cannot be decoded: %s, %s. Do other"
                        " programs write to the tables of the engine?",
                        self._what,
                        type(error).__name__,
                    )
                self._is_strange = True
        return entries
