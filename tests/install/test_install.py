"""From the wheel to a message on the page, as docs/quickstart.md tells a developer to do it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.conftest import require
from tests.install.conftest import OLDEST, Serve, Visit, production
from tests.install.pages import fences, steps
from tests.install.running import Running, Visitor
from tests.install.site import Site
from tests.live.examples.sites import Example
from tests.protocol_client import open_client

pytestmark = pytest.mark.timeout(600)  # the first test waits for both installations

QUICK_START = (
    "install init prepare run page curl view view-url form shell servers production"
    " settings asgi urls"
)
DOCUMENTED_REDIS = "redis://127.0.0.1:6379/0"
DOCUMENTED_ADDRESS = "http://127.0.0.1:8000"


def test_every_code_block_of_the_quick_start_is_followed_here() -> None:
    assert list(steps("quickstart.md")) == QUICK_START.split()
    assert fences("quickstart.md") == len(steps("quickstart.md"))


def test_oldest_supported_django_is_installed(sites: Mapping[str, Site]) -> None:
    version = sites["oldest"].run("python -m django --version").strip()
    assert version in (OLDEST, f"{OLDEST}.0")


def test_service_comes_from_the_wheel(site: Site, sites: Mapping[str, Site], wheel: Path) -> None:
    code = "import realtime; print(realtime.__file__, realtime.__version__)"
    where, version = site.run(f'python -c "{code}"').split()
    # the wheel is unpacked once
    assert where.startswith(str(sites["newest"].environment.packages))
    assert version == wheel.name.split("-")[1]


def test_checks_find_nothing_and_migrations_are_complete(site: Site) -> None:
    # the command shows what the checks find
    assert site.run("python manage.py makemigrations --check --dry-run") == "No changes detected\n"


async def test_messages_of_a_view_and_the_curl_line_arrive(
    visitor: Visitor, server: Running
) -> None:
    """And none of a transaction that was rolled back; the client is who is logged in."""
    require("curl", "Debian: apt-get install curl")
    line = steps("quickstart.md")["curl"]
    assert DOCUMENTED_ADDRESS in line
    async with visitor.listening() as client:
        undone = visitor.http.get("/api-of-its-own/roll-back", params={"text": "undone"})
        said = visitor.post("/say", text="from a view")
        assert (undone.status_code, said.status_code) == (204, 204)
        assert (await client.publication())["data"] == {"text": "from a view"}
        curl = ["sh", "-c", line.replace(DOCUMENTED_ADDRESS, server.address)]
        finished = subprocess.run(curl, capture_output=True, text=True, timeout=20)
        assert json.loads(finished.stdout) == {"result": {}}, finished.stderr
        assert (await client.publication())["data"] == {"text": "hi"}
        present = await client.result("presence", {"channel": "chat:lobby"})
        assert present["presence"][client.client]["user"] == "1"


async def test_message_from_the_shell_arrives_with_redis(
    site: Site, serve_site: Serve, visit: Visit, redis_variables: Mapping[str, str]
) -> None:
    lines = steps("quickstart.md")["shell"]
    assert DOCUMENTED_REDIS in lines
    server = serve_site(site, production("daphne"), **redis_variables)
    async with visit(server).log_in().listening() as client:
        site.run(lines.replace(DOCUMENTED_REDIS, redis_variables["SERVICE_REDIS_URL"]))
        assert (await client.publication())["data"] == {"text": "hi"}


def test_shell_without_redis_says_that_it_serves_nobody_and_what_to_do(site: Site) -> None:
    said = site.run(steps("quickstart.md")["shell"].splitlines()[-1], check=False)
    last = said.strip().splitlines()[-1]
    assert "NotServing" in last
    assert "/api" in last


async def test_who_is_not_logged_in_or_comes_from_another_site_is_refused(
    visitor: Visitor, server: Running
) -> None:
    nobody = {"Origin": server.address}
    for headers in (nobody, visitor.headers | {"Origin": "https://evil.example"}):
        async with open_client(
            server.socket, additional_headers=headers, connected=False
        ) as client:
            await client.send("connect")
            assert (await client.closed())[0] == 3003


async def test_page_with_a_token_says_where_to_renew_it(visitor: Visitor) -> None:
    page = visitor.http.get("/api-of-its-own/token-page").text
    config = json.loads(re.findall(r"<script id=.realtime-config.[^>]*>(.*?)</script>", page)[0])
    ours = {"X-Requested-With": "XMLHttpRequest"}
    token = visitor.http.post(config["refreshEndpoint"], json={}, headers=ours).json()["token"]
    async with open_client(config["endpoint"], token=token) as client:
        await client.result("subscribe", {"channel": "chat:lobby"})
        present = await client.result("presence", {"channel": "chat:lobby"})
        assert present["presence"][client.client]["user"] == "1"


def test_own_pages_still_answer(visitor: Visitor, visit: Visit, server: Running) -> None:
    assert visitor.http.get("/api-of-its-own/who").json() == {"app": "api.views"}
    assert visitor.http.get("/api-of-its-own/page").status_code == 200
    assert visit(server).http.get("/api-of-its-own/page").status_code == 302, "not logged in"


async def test_own_websocket_route_still_answers(visitor: Visitor, server: Running) -> None:
    url = f"ws://127.0.0.1:{server.port}/ws/rooms/7/"
    async with connect(url, additional_headers=visitor.headers, proxy=None) as socket:
        await socket.send(json.dumps({"text": "hello"}))
        assert json.loads(await socket.recv()) == {"user": "ann", "text": "hello"}


async def test_functions_that_replace_that_route_do_the_same(visitor: Visitor) -> None:
    async with visitor.listening("room:7") as client:
        await client.result("publish", {"channel": "room:7", "data": {"text": "hello"}})
        assert (await client.publication())["data"] == {"user": "ann", "text": "hello"}
        error = await client.error("publish", {"channel": "room:7", "data": {"text": 7}})
        assert error == {"code": 1000, "message": "a text is wanted"}


def test_example_needs_the_wheel_alone(sites: Mapping[str, Site], tmp_path: Path) -> None:
    """One of them stands for all: they use the package in the same way."""
    example = Site(Example("dashboard", tmp_path).directory, sites["newest"].environment)
    assert "\nOK\n" in example.run("python manage.py test")
