"""Epochs of streams."""

from __future__ import annotations

import random

EPOCH_BITS = 48


def new_epoch() -> str:
    """Return an epoch that no stream has yet: hexadecimal digits.

    It is cheap, because every publication brings one along for a stream that has none.
    """
    return f"{random.getrandbits(EPOCH_BITS):x}"
