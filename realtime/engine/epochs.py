"""Epochs of streams, and how long one without publications is kept."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TypeAlias

from realtime.config.options import Config
from realtime.protocol.messages import ChannelName

OwnLifetime: TypeAlias = Callable[[ChannelName], int]
"""Returns the seconds for which the position of an unused channel is kept, if it has an option of
its own; 0: it has none."""

EPOCH_BITS = 48

HELD_LIFETIME = 3600
"""Seconds for which the epoch of a channel without publications is kept after the site, or a node
that follows the channel, has asked for the position."""
GLANCED_LIFETIME_MIN = 120
"""Seconds for which a client that was cut off may come back to a channel without publications."""
CHECKS_TO_MISS = 2
"""Position checks, after which an epoch without publications is forgotten."""


def bounded(lifetime: int, least: int) -> int:
    """Return the seconds for which a position is kept: `least` or more; 0: forever."""
    return lifetime and max(lifetime, least)


def no_lifetime(channel: ChannelName) -> int:
    """See `OwnLifetime`: no channel has an option of its own."""
    return 0


def new_epoch() -> str:
    """Return an epoch that no stream has yet: hexadecimal digits.

    It is cheap, because every publication brings one along for a stream that has none.
    """
    return f"{random.getrandbits(EPOCH_BITS):x}"


def glanced_lifetime(config: Config) -> int:
    """Return how long the epoch of a channel is kept that a client has only named."""
    delay = config.client_channel_position_check_delay
    if delay <= 0:  # no node asks again
        return HELD_LIFETIME
    longest = delay + config.client_presence_ping_interval
    return max(GLANCED_LIFETIME_MIN, math.ceil(CHECKS_TO_MISS * longest))
