"""Whoever ends an answer, and whatever dies meanwhile: it has one end."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.processes import run_python
from tests.server import ROOT

pytest_plugins = ["tests.database_fixtures", "tests.engine_options"]

RACES = 120
TIMEOUT = 120


@pytest.mark.timeout(2 * TIMEOUT)
def test_producer_stop_and_sweeper_write_one_end(engine_options: dict[str, Any]) -> None:
    arguments = ["-m", "tests.answers.races", str(RACES), "1", json.dumps(engine_options)]
    done = run_python(arguments, ROOT, dict(os.environ), timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["ends"]) == {"complete", "stopped", "interrupted"}
    assert min(found["died"].values()) >= RACES // 10
