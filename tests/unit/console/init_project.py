"""A fresh project of Django's, and the command that adds the service to it."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

FILES = ("settings", "asgi", "urls")


class Project:
    """What `startproject` makes, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        call_command("startproject", "mysite", str(directory))

    def path(self, name: str) -> Path:
        return self.directory / "mysite" / f"{name}.py"

    def read(self, name: str) -> str:
        return self.path(name).read_bytes().decode()

    def change(self, name: str, change: Callable[[str], str]) -> None:
        self.path(name).write_bytes(change(self.read(name)).encode())

    def contents(self) -> dict[Path, bytes]:
        """All files."""
        return {path: path.read_bytes() for path in self.directory.rglob("*") if path.is_file()}

    def init(self, *arguments: str) -> str:
        """Run `init --yes`, or with other arguments; returns what it prints."""
        output = StringIO()
        call_command("realtime", "init", *(arguments or ["--yes"]), stdout=output)
        return output.getvalue()

    def refused(self, *arguments: str) -> str:
        """Run the command, which must fail and change nothing; returns all that it says."""
        output, before = StringIO(), self.contents()
        with pytest.raises(CommandError) as refused:
            call_command("realtime", "init", *(arguments or ["--yes"]), stdout=output)
        assert self.contents() == before
        return output.getvalue() + str(refused.value)
