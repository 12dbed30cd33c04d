"""The servers that the quick start names: runserver with its reloading, and the others."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping

import httpx
import pytest

from tests.install.conftest import Serve, Visit, production
from tests.install.pages import steps
from tests.install.running import TIMEOUT, Visitor, accepts
from tests.install.site import Site
from tests.server import wait_until

pytestmark = pytest.mark.timeout(600)  # the first test waits for both installations

COMMANDS = [shlex.split(line) for line in steps("quickstart.md")["production"].splitlines()]


@pytest.fixture
def newest(sites: Mapping[str, Site]) -> Site:
    """The site with the newest Django."""
    return sites["newest"]


@pytest.mark.parametrize("name", [command[2] for command in COMMANDS])
async def test_server_delivers_to_a_site_without_routes_of_its_own(
    newest: Site, serve_site: Serve, visit: Visit, name: str
) -> None:
    command = [word.replace("mysite.asgi", "mysite.plain_asgi") for word in production(name)]
    server = serve_site(newest, command)
    visitor = visit(server).log_in()
    async with visitor.listening() as client:
        visitor.post("/say", text=f"through {name}")
        assert (await client.publication())["data"] == {"text": f"through {name}"}


async def test_runserver_delivers_reloads_and_stops(
    site: Site, serve_site: Serve, visit: Visit
) -> None:
    server = serve_site(site, shlex.split(steps("quickstart.md")["run"]))
    visitor = visit(server).log_in()
    views = site.directory / "api" / "views.py"
    code = views.read_text()
    try:
        async with visitor.listening() as client:
            visitor.post("/say", text="before")
            assert (await client.publication())["data"] == {"text": "before"}
            assert visitor.http.get("/static/realtime/client.js").status_code == 200

            # nobody asks until then: asgiref begins a thread after each request, also while
            # Python ends, which crashes it in some versions
            closing = asyncio.create_task(client.closed())
            while not closing.done():  # Django takes the first state that it sees for an old one
                views.write_text(code.replace("__name__", '"reloaded"'))
                await asyncio.wait([closing], timeout=2)
            await closing
            wait_until(lambda: answer(visitor) == {"app": "reloaded"}, TIMEOUT, "the new code")

        async with visitor.listening() as client:
            visitor.post("/say", text="after")
            assert (await client.publication())["data"] == {"text": "after"}

        server.interrupt()
        assert not accepts(server.port)
    finally:
        views.write_text(code)  # other tests use the site, too


def answer(visitor: Visitor) -> object:
    """What the site's own app says; None while it is being reloaded."""
    try:
        return visitor.http.get("/api-of-its-own/who").json()
    except httpx.TransportError:
        return None
