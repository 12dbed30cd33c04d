"""Runs tests of a sample site in processes of their own, as its developer does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = Path(__file__).parent / "sample"
PLUGIN = "realtime.testing.plugin"
KIT = ("-p", PLUGIN)
"""Where the package is not installed, its plugin is named."""


class Project:
    """A copy of the sample site."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site"
        shutil.copytree(SAMPLE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self._path = [str(self.folder), str(ROOT)]

    def write(self, files: Mapping[str, str]) -> None:
        """Add files to the site."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def install(self) -> None:
        """Have pytest find the entry points that the package declares, as if it were installed."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        entries = "\n".join(f"{k} = {v}" for k, v in project["entry-points"]["pytest11"].items())
        metadata = self.folder.parent / "packages" / "sample_install-1.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-install\n")
        (metadata / "entry_points.txt").write_text(f"[pytest11]\n{entries}\n")
        files = [path.relative_to(ROOT) for path in (ROOT / "realtime").rglob("*.py")]
        (metadata / "RECORD").write_text("".join(f"{path},,\n" for path in files))
        self._path.append(str(metadata.parent))

    def run(self, *arguments: str, settings: str = "settings") -> str:
        """Run `python -m ...` with warnings as errors; returns its output, of success only."""
        done = self.start(*arguments, settings=settings)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(
        self, *arguments: str, settings: str = "settings"
    ) -> subprocess.CompletedProcess[str]:
        """Run `python -m ...`, whatever comes of it."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SERVICE_", "PYTEST_", "COV_"))
        }
        environment |= {
            "PYTHONPATH": os.pathsep.join(self._path),
            "DJANGO_SETTINGS_MODULE": settings,
            "PYTHONWARNINGS": "error",
        }
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
