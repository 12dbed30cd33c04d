"""Keep the garbage collector from walking a heap that will not change.

A full collection walks all of Django, nobody is served meanwhile, and connections that come
and go cause collections. What exists when serving begins
stays anyway, so it is taken out of collection; and collections become rarer, because
closed clients leave no cycles behind.
"""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 50, 1_000)


def settle() -> None:
    """Call once, when the application is loaded. Affects the whole process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
