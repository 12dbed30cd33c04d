"""Write all changed files, or none.

Both texts of each file are written beside it first. Then the new files take the places of the old
ones; if one cannot, those before it get their old text back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class Change(NamedTuple):
    """A file and what becomes of it."""

    name: str
    """Its path in the project."""
    path: Path
    encoding: str
    before: str
    after: str

    @property
    def old(self) -> bytes:
        return self.before.encode(self.encoding)

    @property
    def new(self) -> bytes:
        return self.after.encode(self.encoding)


class NotWritten(Exception):
    """No file was changed; the text says why."""


def write(changes: Sequence[Change]) -> None:
    """Change files.

    Raises:
        NotWritten: a file was changed meanwhile, or cannot be written. All files are as before.
    """
    copies: list[Path] = []
    replaced: list[tuple[Path, Path]] = []
    done = False
    try:
        ready = []
        for change in changes:
            pair = (
                _beside(change.path, change.new, copies),
                _beside(change.path, change.old, copies),
            )
            ready.append((change, *pair))
        for change in changes:
            if change.path.read_bytes() != change.old:
                raise NotWritten(f"{change.name} was changed meanwhile")
        for change, new, old in ready:
            replaced.append((old, change.path))
            new.replace(change.path)
        done = True
    except OSError as error:
        raise NotWritten(f"{error.filename} cannot be written: {error.strerror}") from error
    finally:
        if not done:
            for old, path in reversed(replaced):
                old.replace(path)
        for copy in copies:
            with suppress(OSError):
                copy.unlink(missing_ok=True)


def _beside(path: Path, content: bytes, copies: list[Path]) -> Path:
    """Write a file with the permissions of another one, in the directory of that one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    copy = Path(name)
    copies.append(copy)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    shutil.copymode(path, copy)
    owner = path.stat()
    if (owner.st_uid, owner.st_gid) != (copy.stat().st_uid, copy.stat().st_gid):
        os.chown(copy, owner.st_uid, owner.st_gid)
    return copy
