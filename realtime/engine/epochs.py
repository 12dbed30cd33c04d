"""Epochs: what tells one stream of a channel from the next."""

from __future__ import annotations

import random
import string

EPOCH_LENGTH = 8


def new_epoch() -> str:
    """Letters that no other epoch has."""
    return "".join(random.choices(string.ascii_letters, k=EPOCH_LENGTH))
