"""The first look at the project, as `make run` gives it: migrate, serve, copy and paste."""

from __future__ import annotations

import asyncio
import html
import os
import re
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.conftest import require
from tests.ports import free_port
from tests.protocol_client import open_client
from tests.ready_site import ReadySite, manage
from tests.server import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadySite]:
    """A ready site at its first start."""
    site = ReadySite(tmp_path_factory.mktemp("site"))
    yield site
    site.stop()


@pytest.fixture(scope="module")
def second_start(site: ReadySite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadySite]:
    """The same site, started again beside it from another directory."""
    second = ReadySite(site.directory, cwd=tmp_path_factory.mktemp("elsewhere"))
    yield second
    second.stop()


async def test_printed_curl_line_reaches_a_client_with_the_printed_token(site: ReadySite) -> None:
    require("curl", "Debian: apt-get install curl")
    token = site.find(r"^Connection token of user demo, valid 7 days:\n  (\S+)$")
    endpoint = site.find(r"^WebSocket: +(ws://\S+)$")
    line = site.find(r"^Publish from another terminal:\n  (curl .+)$")
    async with open_client(endpoint, token=token) as client:
        await client.result("subscribe", {"channel": "demo:lobby"})

        finished = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=20)

        assert finished.stdout.strip() == '{"result":{}}', finished.stderr
        while (push := await client.push()).get("type", 0) != 0:
            pass  # the client's own join
        assert push["channel"] == "demo:lobby"
        assert push["data"]["data"] == {"text": "Hello from the terminal"}


def test_readme_and_page_show_the_printed_line(site: ReadySite) -> None:
    line = site.find(r"^Publish from another terminal:\n  (curl .+)$")
    line = line.replace(site.secret("api_key"), "YOUR_API_KEY")
    assert line in html.unescape(httpx.get(site.address + "/demo", timeout=20).text)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert line.replace(str(site.port), "8000") in readme


def test_printed_command_changes_the_password(site: ReadySite) -> None:
    command = site.find(r"^\(shown this once; change it with: (.+)\)$")
    finished = subprocess.run(
        ["bash", "-c", f"{command} --help"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert "username" in finished.stdout, finished.stderr
    assert command.endswith("changepassword operator")


def test_server_prints_only_that_it_listens(site: ReadySite) -> None:
    after = site.log.partition("Ctrl-C stops the server.\n")[2]
    assert [line.partition("INFO ")[2][:23] for line in after.splitlines()[:1]] == [
        "daphne.server: Listenin"
    ]


@pytest.mark.parametrize("name", ["Demo page", "Admin"])
def test_printed_address_opens(site: ReadySite, name: str) -> None:
    address = site.find(rf"^{name}: +(http://\S+)$")
    assert httpx.get(address, follow_redirects=True, timeout=20).status_code == 200


def test_printed_password_signs_in_to_the_admin(site: ReadySite) -> None:
    with httpx.Client(base_url=site.address, follow_redirects=True, timeout=20) as browser:
        browser.get("/admin/login/")
        response = browser.post(
            "/admin/login/?next=/admin/",
            data={
                "username": "operator",
                "password": site.password,
                "csrfmiddlewaretoken": browser.cookies["csrftoken"],
            },
        )

    assert response.url.path == "/admin/"


def test_demo_page_allows_no_script_but_its_own_files(site: ReadySite) -> None:
    response = httpx.get(site.address + "/demo", timeout=20)
    policy = dict(
        directive.partition(" ")[::2]
        for directive in response.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == f"'self' {site.socket}"


def test_demo_page_leads_to_the_documentation(site: ReadySite) -> None:
    page = httpx.get(site.address + "/demo", timeout=20).text
    found = re.search(r'href="(/docs/index\.\w+)">Documentation<', page)
    assert found is not None
    first = httpx.get(site.address + found[1], timeout=20)
    assert "Documentation" in first.text
    assert httpx.get(f"{site.address}/docs/..%2Fpyproject.md", timeout=20).status_code == 400


def test_demo_user_stays_the_same_within_a_browser_session(site: ReadySite) -> None:
    def users(browser: httpx.Client) -> set[str]:
        return {
            browser.get("/demo").text.partition('"user": "')[2].partition('"')[0] for _ in range(2)
        }

    with httpx.Client(base_url=site.address, timeout=20) as browser:
        found = users(browser)

    assert len(found) == 1
    assert found.pop().startswith("Guest ")


@pytest.mark.parametrize(
    ("path", "name"),
    [("/demo/token", "Guest [0-9]{4}"), ("/demo/token?client=other", "Guest [0-9]{4}-2")],
    ids=["own", "other"],
)
async def test_demo_token_connects(site: ReadySite, path: str, name: str) -> None:
    token = httpx.get(site.address + path, timeout=20).json()["token"]

    async with open_client(site.socket, connected=False) as client:
        result = await client.result("connect", {"token": token})
        await client.result("subscribe", {"channel": "demo:lobby"})
        here = await client.result("presence", {"channel": "demo:lobby"})
        refused = await client.error("subscribe", {"channel": "lobby"})

    assert re.fullmatch(name, here["presence"][result["client"]]["conn_info"]["name"])
    assert result["expires"] is True
    assert 0 < result["ttl"] <= 3600
    assert refused["code"] == 103


def sessions(site: ReadySite) -> int:
    """The number of rows in the table of sessions."""
    with closing(sqlite3.connect(site.directory / "db.sqlite3")) as database:
        [count] = database.execute("SELECT count(*) FROM django_session").fetchone()
    return int(count)


def test_visitors_of_the_demo_leave_no_session(site: ReadySite) -> None:
    before = sessions(site)
    for path in ("/demo", "/demo/token"):
        assert httpx.get(site.address + path, timeout=20).status_code == 200
    assert sessions(site) == before


STRANGE_FILES = (
    "../var/api_key",
    "%2e%2e/var/api_key",
    "%00",
    "a" * 5000,
    "../" * 40 + "etc/passwd",
)


@pytest.mark.parametrize("name", STRANGE_FILES)
async def test_path_that_names_no_static_file_is_unknown(site: ReadySite, name: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(f"GET /static/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    status = (await reader.readline()).split()[1]
    writer.close()
    assert status == b"404"


def test_second_start_prints_no_password(second_start: ReadySite) -> None:
    assert "password" not in second_start.log
    assert "Connection token" in second_start.log


@pytest.mark.parametrize("signal_sent", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
async def test_signal_tells_clients_to_come_back_and_ends_the_server(
    tmp_path: Path, signal_sent: signal.Signals
) -> None:
    site = ReadySite(tmp_path)
    token = site.find(r"^  (ey\S+)$")
    try:
        async with open_client(site.socket, token=token) as client:
            os.kill(site.pid, signal_sent)

            assert await client.closed() == (3001, '{"reason":"shutdown","reconnect":true}')
        site.wait()
    finally:
        site.stop()


def test_port_in_use_is_said_clearly(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        finished = manage(tmp_path, "serve", "--port", str(port), check=False)

    assert finished.returncode != 0
    assert f"Port {port} of 127.0.0.1 is in use" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_missing_database_is_said_clearly(tmp_path: Path) -> None:
    finished = manage(tmp_path, "serve", "--port", str(free_port()), check=False)
    assert finished.returncode != 0
    assert "manage.py migrate" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_site_can_be_served_from_another_directory(second_start: ReadySite) -> None:
    assert httpx.get(second_start.address + "/demo", timeout=20).status_code == 200
