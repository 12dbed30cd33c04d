"""The garbage collector of a process that only serves."""

from __future__ import annotations

import gc

GC_THRESHOLDS = (50_000, 50, 1_000)


def freeze_gc() -> None:
    """Freeze what was loaded, and collect less often. Affects the whole process.

    Call it once, when the application is loaded.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
