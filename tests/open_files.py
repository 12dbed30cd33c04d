"""What a process has open, read from /proc."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def open_files(process: int | str) -> list[str]:
    """Return what the files and sockets of a process are: a path, or `socket:[inode]`.

    `process`: the process ID, or "self".
    """
    targets = []
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile, as that of the listing is
            targets.append(os.readlink(descriptor))
    return targets
