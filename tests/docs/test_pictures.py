"""`make pictures` still finds what it imports."""

from __future__ import annotations

import os

from tests.processes import run_python
from tests.server import ROOT


def test_pictures_can_be_made_without_django_settings() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}

    done = run_python(["-c", "import docs.pictures.make"], ROOT, environment)

    assert (done.returncode, done.stderr) == (0, "")
