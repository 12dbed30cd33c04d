"""Idempotency keys: what is published with one is published once."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from realtime.protocol.messages import ChannelName

ONCE_LIFETIME = 300
"""Seconds for which an idempotency key is remembered, unless the publisher says otherwise."""


MAX_ONCE_LIFETIME = 31 * 86_400


class Once(NamedTuple):
    """An idempotency key: with the same key, a channel gets one publication.

    key: any text. Keys of different channels have nothing to do with each other.
    lifetime: whole seconds for which the key is remembered, 1 to `MAX_ONCE_LIFETIME`;
        0 in a transaction: only whether it was used is asked.
    number: of the publication, where the key is that of several. Such a key has nothing to do with
        the same text as the key of one publication.
    """

    key: str
    lifetime: int = ONCE_LIFETIME
    number: int | None = None

    def digest(self, channel: ChannelName) -> str:
        """Return what is remembered of the key in a channel: 32 hex digits, however long it is."""
        text = f"{len(channel)}:{channel}{self.key}"
        if self.number is not None:
            text = f"{self.number}#{text}"
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
