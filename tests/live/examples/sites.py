"""The sites of `examples/`, each in a copy of its own, run as its reader runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.install.running import accepts
from tests.ports import free_port
from tests.processes import run_python
from tests.server import ROOT, ListeningProcess, wait_until

EXAMPLES = ROOT / "examples"
NAMES = ("assistant", "chat", "cursor", "dashboard", "notifications", "seats", "todo")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "db.sqlite3*")


class Example:
    """A copy of one of them."""

    def __init__(self, name: str, directory: Path) -> None:
        self.directory = directory / name
        shutil.copytree(EXAMPLES / name, self.directory, ignore=LEFT_OUT)

    def change(self, file: str, old: str, new: str) -> None:
        """Change a text in a file of the copy, where it is once."""
        path = self.directory / file
        text = path.read_text()
        assert text.count(old) == 1, (file, old)
        path.write_text(text.replace(old, new))

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of its `manage.py` to the end."""
        return run_python(["manage.py", *arguments], self.directory, environment())

    def serve(self) -> ListeningProcess:
        """Start it, as its README says."""
        migrated = self.manage("migrate")
        assert migrated.returncode == 0, migrated.stdout + migrated.stderr
        assert "makemigrations" not in migrated.stdout, migrated.stdout
        port = free_port()
        process = ListeningProcess(
            ["manage.py", "runserver", "--noreload", str(port)],
            rf"development server at http://127\.0\.0\.1:({port})",
            environment(),
            cwd=self.directory,
        )
        wait_until(lambda: accepts(port), what="a listening server")  # it says so before it does
        return process


def environment() -> dict[str, str]:
    """Return this process's environment, without what configures another site or service."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DJANGO_", "SERVICE_"))
    }
