"""What the settings of a site say, as they run there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from realtime.tools.init import probe

TIMEOUT = 60.0
"""Seconds. Settings that take longer wait for something."""


class Module(msgspec.Struct):
    """A file of the project that has a list of apps."""

    file: str
    apps: list[str]
    is_tuple: bool


class Facts(msgspec.Struct):
    """What one module of settings says, or why it says nothing."""

    settings: str = ""
    error: str = ""
    path: list[str] = msgspec.field(default_factory=list)
    loaded: list[str] = msgspec.field(default_factory=list)
    """Files of the project that the settings have begun to load."""
    modules: list[Module] = msgspec.field(default_factory=list)
    """In the order in which they first had a list: what others build upon comes first."""
    apps: list[str] = msgspec.field(default_factory=list)
    has_options: bool = False
    asgi: str = ""
    wsgi: str = ""
    root: str = ""


def look(directory: Path, settings: str, blocks: Mapping[str, str] | None = None) -> Facts:
    """Run settings of a site, and return what they say.

    Args:
        directory: where manage.py is.
        settings: name of their module; "" for the one that manage.py names.
        blocks: text that is tried at the ends of files.
    """
    try:
        finished = subprocess.run(
            [sys.executable, probe.__file__],
            cwd=directory,
            input=msgspec.json.encode({"settings": settings, "blocks": blocks or {}}),
            capture_output=True,
            timeout=TIMEOUT,
        )
        return msgspec.json.decode(finished.stdout, type=Facts)
    except subprocess.TimeoutExpired:
        return Facts(settings, f"they take longer than {TIMEOUT:.0f} s")
    except (msgspec.DecodeError, OSError):
        return Facts(settings, "they end the process")
