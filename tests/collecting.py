"""How workers import modules of tests: each begins at another, and uses what others compiled."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.imports import ROOT, module_name


def import_in_turn(config: pytest.Config) -> None:
    """Import the modules that a worker is about to collect, before pytest does in its order.

    pytest compiles a module of tests anew for its assertions, and keeps the result in a file. Where
    there are no such files yet, workers that go through the modules in the same order all compile
    each of them. This does nothing where no bytecode is written.

    Args:
        config: of a worker of pytest-xdist, or of a process without workers.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    files = [file for place in config.args for file in files_of(ROOT / place)]
    start = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[start:] + files[:start]:
        with suppress(Exception):  # collecting it fails as well, and tells why
            importlib.import_module(module_name(file))


def files_of(place: Path) -> list[Path]:
    """Return the modules of tests in a directory; none for a file, which may be deselected."""
    return sorted(place.rglob("test_*.py")) if place.is_dir() else []
