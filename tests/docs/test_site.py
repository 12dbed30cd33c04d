"""The documentation site, built as for readers: a broken link or reference is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import require
from tests.server import ROOT

BUILDER = f"{sys.prefix}-docs/bin/sphinx-build"
"""Beside the environment of the tests, as the Makefile has it."""


def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    builder = require(BUILDER, "make docs")

    done = subprocess.run(
        [builder, "-q", "-W", "--keep-going", "-n", "-b", "html", "docs", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.stderr == ""
    assert done.returncode == 0
    assert (tmp_path / "debugging.html").is_file()
