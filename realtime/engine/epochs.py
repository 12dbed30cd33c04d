"""Epochs: what tells one stream of a channel from the next."""

from __future__ import annotations

import random

EPOCH_BITS = 48


def new_epoch() -> str:
    """Hexadecimal digits that no other epoch has. Cheap: every publication brings one along."""
    return f"{random.getrandbits(EPOCH_BITS):x}"
