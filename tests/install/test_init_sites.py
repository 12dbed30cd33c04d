"""`init` in sites of several shapes: their checks pass, and they serve."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.install.conftest import Serve, production
from tests.install.pages import steps
from tests.install.site import Site
from tests.protocol_client import open_client
from tests.unit.tools.init_project import SHAPES, Project

pytestmark = pytest.mark.timeout(600)  # the first test waits for both installations


@pytest.mark.parametrize(
    ("shape", "django", "settings"),
    [
        ("fresh", "oldest", "settings"),
        ("split", "newest", "settings.production"),
        ("own WebSockets", "oldest", "settings"),
        ("cookiecutter", "newest", "settings.local"),
    ],
)
async def test_site_is_complete(
    sites: Mapping[str, Site],
    serve_site: Serve,
    tmp_path: Path,
    shape: str,
    django: str,
    settings: str,
) -> None:
    make, file = SHAPES[shape]
    make(Project(tmp_path))
    site = Site(tmp_path, sites[django].environment)

    site.run(f"{steps('quickstart.md')['init'].strip()} --yes")

    said = site.run("python manage.py check --fail-level WARNING")
    assert said == "System check identified no issues (0 silenced).\n"
    (key,) = re.findall(r'"api_key": "([\w-]+)"', (tmp_path / f"mysite/{file}.py").read_text())
    in_force = {"DJANGO_SETTINGS_MODULE": f"mysite.{settings}"}
    server = serve_site(site, production("realtime"), **in_force)
    assert server.subscribers(key) == 0
    async with open_client(server.socket, origin=server.address, connected=False) as client:
        await client.send("connect")

        assert (await client.closed())[0] == 3003
