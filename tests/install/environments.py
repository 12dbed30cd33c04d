"""Empty virtual environments, and what is installed into them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.server import ROOT

INSTALL_TIMEOUT = 500.0
"""Seconds; the first time everything is downloaded."""

REPOSITORY = "https://example.org/realtime"
"""Where the repository is said to be."""

INHERITED = ("DJANGO_", "SERVICE_", "PYTHON", "VIRTUAL_ENV")
"""Environment variables that begin so would change what is tested."""


def build_wheel(directory: Path) -> Path:
    """The project's wheel, built from the sources as they are."""
    run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", directory, ROOT],
        REPOSITORY_URL=REPOSITORY,
    )
    (wheel,) = directory.glob("*.whl")
    return wheel


def development_pin(package: str) -> str:
    """A package with the version that the extra `dev` names, such as `granian==2.8.7`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (pin,) = (
        pin for pin in project["optional-dependencies"]["dev"] if pin.startswith(f"{package}==")
    )
    return str(pin)


class Environment:
    """One virtual environment, empty at first; it has not even pip."""

    def __init__(self, directory: Path, *, beneath: Environment | None = None) -> None:
        """`beneath`: another one, whose packages are there where this one has no others."""
        run([sys.executable, "-m", "venv", "--without-pip", directory])
        self.bin = directory / ("Scripts" if os.name == "nt" else "bin")
        (self.packages,) = directory.glob("[Ll]ib/**/site-packages")
        if beneath is not None:
            (self.packages / "beneath.pth").write_text(f"{beneath.packages}\n")

    def install(self, *requirements: object) -> None:
        """Install as `pip install` with these arguments would, run in this environment."""
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python"]
        # modules are compiled when they are used, which is a few of them
        run([*pip, "install", "--quiet", "--no-compile", *requirements])

    def variables(self, **more: str) -> dict[str, str]:
        """Environment variables of a shell in which this environment is active."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
        path = f"{self.bin}{os.pathsep}{kept['PATH']}"
        return kept | {"PATH": path, "PYTHONUNBUFFERED": "1"} | more


def run(command: list[object], **variables: str) -> None:
    """Run a command that must succeed; its output is in the failure."""
    finished = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        env=os.environ | variables,
        text=True,
        timeout=INSTALL_TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
