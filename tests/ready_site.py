"""Start the ready site as a visitor would: `manage.py migrate`, then `manage.py serve`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.ports import free_port
from tests.processes import run_python
from tests.server import ROOT, TIMEOUT, ListeningProcess


class ReadySite(ListeningProcess):
    """One `manage.py serve` with its data in a directory of its own."""

    def __init__(self, directory: Path, *, cwd: Path = ROOT) -> None:
        self.directory = directory
        port = free_port()
        migrate(directory)
        super().__init__(
            [str(ROOT / "manage.py"), "serve", "--port", str(port)],
            rf"Listening on TCP address 127\.0\.0\.1:({port})",
            environment(directory),
            cwd=cwd,
        )

    def find(self, pattern: str) -> str:
        """The first group of a pattern in the output; it must be there."""
        match = re.search(pattern, self.log, re.MULTILINE)
        assert match, f"{pattern} is not in the output:\n{self.log}"
        return match[1]

    def secret(self, name: str) -> str:
        """A secret the site made for itself: api_key, token_hmac_secret_key."""
        return (self.directory / name).read_text(encoding="ascii").strip()

    def api(self, *commands: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run commands of the server API in one request; returns their replies, all good."""
        request = urllib.request.Request(
            f"{self.address}/api",
            "\n".join(json.dumps(command) for command in commands).encode(),
            {
                "Authorization": f"apikey {self.secret('api_key')}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            replies: list[dict[str, Any]] = [json.loads(line) for line in response]
        assert not any("error" in reply for reply in replies), replies
        return replies

    def publish(self, channel: str, *data: Any) -> None:
        """Publish each of the data through the server API."""
        self.api(
            *({"method": "publish", "params": {"channel": channel, "data": each}} for each in data)
        )

    @property
    def password(self) -> str:
        """The operator's password, as it was printed."""
        return self.find(r"as operator, password (\S+)$")


def environment(directory: Path) -> dict[str, str]:
    """This process's environment, without what configures another site or service; with a demo."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DJANGO_", "SERVICE_"))
    }
    return kept | {"DJANGO_DATA_DIR": str(directory), "DJANGO_DEMO": "true"}


def migrate(directory: Path) -> None:
    """Put a database with its tables into the data directory of a site, unless it has one."""
    database = directory / "db.sqlite3"
    if not database.exists():
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(_migrated().name) / "db.sqlite3", database)


@cache
def _migrated() -> TemporaryDirectory[str]:
    """A data directory after `manage.py migrate`, which is run once."""
    directory = TemporaryDirectory(prefix="migrated-")
    manage(Path(directory.name), "migrate", "--verbosity", "0")
    return directory


def manage(
    directory: Path, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a management command of the ready site to its end."""
    finished = run_python([str(ROOT / "manage.py"), *arguments], ROOT, environment(directory))
    assert finished.returncode == 0 or not check, finished.stdout + finished.stderr
    return finished
