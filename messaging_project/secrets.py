"""Secrets of a new installation: made once, kept in files that only their owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def secret(directory: Path, name: str) -> str:
    """Return a secret, made and kept at its first use.

    Args:
        directory: holds a file for each secret.
        name: the name of the file.

    Raises:
        OSError: the directory cannot be written to.
    """
    path = directory / name
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        pass
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # written aside and linked in place, so that processes starting together agree on one
    draft = directory / f".{name}.{os.getpid()}"
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(32) + "\n", encoding="ascii")
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii").strip()
