"""`make pictures` still finds what it imports."""

from __future__ import annotations

import os
import re

from tests.processes import run_python
from tests.server import ROOT


def test_pictures_can_be_made_without_django_settings() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    done = run_python(
        ["-c", "from docs.pictures import examples, film, front, make"],
        ROOT,
        environment,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_film_of_the_readme_is_small_and_has_several_pictures() -> None:
    (path,) = re.findall(r'<img src="(\S+recovery\.png)"', (ROOT / "README.md").read_text())
    film = (ROOT / path).read_bytes()
    assert film.startswith(b"\x89PNG")
    assert int.from_bytes(film.partition(b"acTL")[2][:4]) == film.count(b"fcTL") > 1
    assert len(film) <= 400 * 1024
