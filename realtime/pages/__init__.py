"""What pages of the site need: their configuration, and positions as of their requests.

from realtime.pages import RealtimePositionMixin, aset_positions, set_positions
"""

from realtime.pages.headers import (
    RealtimePositionMixin,
    aevent_id,
    aset_positions,
    set_positions,
)
from realtime.pages.page_positions import apositions, positions

__all__ = [
    "RealtimePositionMixin",
    "aevent_id",
    "apositions",
    "aset_positions",
    "positions",
    "set_positions",
]
