"""Records as bytes, which is how PostgreSQL keeps them."""

from __future__ import annotations

from functools import partial

import msgspec

from realtime.engine import entries
from realtime.engine.records import Message

FOREIGN = "Do other programs write to the tables of the engine?"
"""What a row that cannot be decoded asks."""

decoding = partial(entries.decoding, "PostgreSQL")

pack = msgspec.json.Encoder().encode
"""Returns a message as bytes."""
unpack = msgspec.json.Decoder(Message).decode
"""Returns the message in bytes. Raises msgspec.DecodeError: no node wrote this."""


def text(key: bytes) -> str:
    """Return the name that a key in a table stands for; see `streams.key`.

    Raises:
        UnicodeDecodeError: no node wrote this.
    """
    return key.decode(errors="surrogatepass")
