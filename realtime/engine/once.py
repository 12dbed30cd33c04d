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
    lifetime: whole seconds for which the key is remembered, 1 to `MAX_ONCE_LIFETIME`.
    """

    key: str
    lifetime: int = ONCE_LIFETIME

    def digest(self, channel: ChannelName) -> str:
        """Return what is remembered of the key in a channel: 32 hex digits, however long it is."""
        text = f"{len(channel)}:{channel}{self.key}".encode(errors="surrogatepass")
        return hashlib.blake2b(text, digest_size=16).hexdigest()
