"""The version before the present layout, from Git, for processes that run its code."""

from __future__ import annotations

import compileall
import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import require
from tests.server import ROOT

COMMIT = os.environ.get("OLD_VERSION", "178b7f06e07018f169334e0a8af38a64a7526569")
"""By default the last commit before modules moved. The environment may name a later one, to try
that one beside the present version."""

PARTS = (
    "realtime",
    "api",
    "admin_panel",
    "tests/__init__.py",
    "tests/settings.py",
    "tests/site",
)
"""What a server of the test site needs."""

SETTINGS = """\
from importlib.util import find_spec
from pathlib import Path

from tests.settings import *

# the present version is installed in the same environment
tree = Path(__file__).resolve().parent.parent
for name in ("realtime", "api", "admin_panel"):
    origin = Path(find_spec(name).origin)
    assert origin.is_relative_to(tree), f"{name} is at {origin}, not in {tree}"
"""
"""Settings with which a process that finds another version's code does not start."""


def extract(tree: Path, commit: str, *parts: str) -> None:
    """Write files of a commit into a directory.

    Without the commit the test fails in CI and is skipped elsewhere.
    """
    git = require("git", "apt install git")
    archive = subprocess.run(
        [git, "archive", "--format=tar", commit, *parts],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        message = f"commit {commit[:7]} is not in this clone (git fetch --unshallow)"
        if os.environ.get("CI"):
            pytest.fail(f"{message}: {archive.stderr.decode(errors='replace').strip()}")
        pytest.skip(message)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tree, filter="data")


def unpack(tree: Path) -> None:
    """Write the old version into a directory."""
    extract(tree, COMMIT, *PARTS)
    (tree / "tests" / "old_settings.py").write_text(SETTINGS)
    # with PYTHONDONTWRITEBYTECODE each process would compile it again
    compileall.compile_dir(tree, quiet=1)


def environment(tree: Path) -> Mapping[str, str]:
    """The environment, besides the usual one, of a process that runs the code of a tree."""
    return {"PYTHONPATH": str(tree), "DJANGO_SETTINGS_MODULE": "tests.old_settings"}
