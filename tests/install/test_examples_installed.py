"""An example with the package from the wheel, as a reader without a clone runs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.install.site import Site
from tests.live.examples.sites import Example

pytestmark = pytest.mark.timeout(600)  # the first test waits for both installations


def test_example_needs_the_wheel_alone(sites: Mapping[str, Site], tmp_path: Path) -> None:
    """One of them stands for all: they use the package in the same way."""
    example = Site(Example("dashboard", tmp_path).directory, sites["newest"].environment)
    assert "\nOK\n" in example.run("python manage.py test")
