"""Append blocks to files: to all, or to none.

No line that is there changes. Encoding, line ends, permissions and symbolic links stay.
"""

from __future__ import annotations

import ast
import io
import os
import shutil
import tempfile
import tokenize
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class NotSure(Exception):
    """Only the author of a file can change it; the text says why."""


class NotWritten(Exception):
    """No file was changed; the text says why."""


class Source(NamedTuple):
    """A Python file of a project."""

    name: str
    """Its path in the project."""
    path: Path
    content: bytes
    text: str
    tree: ast.Module


class FileChange(NamedTuple):
    """A file and what becomes of it."""

    name: str
    path: Path
    before: bytes
    after: bytes


def read(directory: Path, path: Path) -> Source:
    """Read a file of a project.

    Raises:
        NotSure: it is not in the project, or Python cannot read it.
    """
    directory, target = directory.resolve(), path.resolve()
    if not target.is_file():
        raise NotSure("there is no such file")
    if not target.is_relative_to(directory):
        raise NotSure("it is outside of the project")
    try:
        content = target.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the site's code, such as unknown escapes
            tree = ast.parse(content)
    except SyntaxError as error:
        raise NotSure(f"it has a syntax error in line {error.lineno or 1}") from None
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise NotSure(f"it cannot be read: {error}") from None
    return Source(str(target.relative_to(directory)), target, content, text, tree)


def append(source: Source, block: str) -> FileChange:
    """Return the change that adds a block at the end, behind an empty line.

    Raises:
        NotSure: the file is read-only, or has an encoding of its own.
    """
    if not source.path.stat().st_mode & 0o222 or not os.access(source.path, os.W_OK):
        raise NotSure("it is read-only")
    newline = "\r\n" if "\r\n" in source.text else "\n"
    start = "" if source.text.endswith("\n") or not source.text else "\n"
    added = f"{start}\n{block}".replace("\n", newline).encode("ascii")
    after = source.content + added
    try:
        ast.parse(after)
    except (SyntaxError, ValueError):
        raise NotSure("it is written in a way to which nothing can be added") from None
    return FileChange(source.name, source.path, source.content, after)


def write(changes: Sequence[FileChange]) -> None:
    """Change files.

    Both texts of each file are written beside it first. Then the new files take the places of the
    old ones; if one cannot, those before it get their old text back.

    Raises:
        NotWritten: a file was changed meanwhile, or cannot be written. All files are as before.
    """
    copies: list[Path] = []
    try:
        new = [_beside(change.path, change.after, copies) for change in changes]
        old = [_beside(change.path, change.before, copies) for change in changes]
        for change in changes:
            if change.path.read_bytes() != change.before:
                raise NotWritten(f"{change.name} was changed meanwhile")
        for number, change in enumerate(changes):
            try:
                new[number].replace(change.path)
            except OSError:
                for copy, done in zip(old, changes[:number], strict=False):
                    copy.replace(done.path)
                raise
    except OSError as error:
        raise NotWritten(f"{error.filename} cannot be written: {error.strerror}") from error
    finally:
        for copy in copies:
            with suppress(OSError):
                copy.unlink(missing_ok=True)


def _beside(path: Path, content: bytes, copies: list[Path]) -> Path:
    """Write a file with the permissions and the owner of another one, in its directory."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    copies.append(Path(name))
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    shutil.copymode(path, name)
    owner, own = path.stat(), os.stat(name)
    if (owner.st_uid, owner.st_gid) != (own.st_uid, own.st_gid):
        os.chown(name, owner.st_uid, owner.st_gid)
    return copies[-1]
