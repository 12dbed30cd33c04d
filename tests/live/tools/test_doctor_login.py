"""The doctor tries a login: the session of a user, from a page of the site."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import require
from tests.install.running import accepts
from tests.live.configurations import Serve
from tests.live.hooks_site import OPTIONS, create_user, environment
from tests.live.tools.command import Findings, findings, front_proxy
from tests.ports import free_port
from tests.processes import run_python
from tests.server import ROOT, Server, wait_until


def look(made: Mapping[str, str], url: str, *arguments: str) -> Findings:
    """What the doctor finds in a process of its own."""
    options = {"SERVICE_SESSION_AUTHENTICATION": "true"}
    command = ["-m", "django", "realtime", "doctor", "--json", "--url", url, *arguments]
    finished = run_python(command, ROOT, os.environ | made | options)
    assert "Traceback" not in finished.stderr, finished.stderr
    return findings(finished.stdout)


def replace_host(head: bytes) -> bytes:
    """nginx replaces the header Host by default."""
    return re.sub(rb"(?i)\r\nhost: [^\r]+", rb"\r\nHost: inner.example", head)


def test_login_works_unless_the_proxy_replaces_the_host(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = environment(tmp_path_factory)
    server = serve(environment=made, **OPTIONS)
    username, _ = create_user(server)

    direct = look(made, server.address, "--user", username)["login"]
    with front_proxy(server.port, change=replace_host) as proxy:
        page = proxy.address
        behind = look(made, page, "--user", username)["login"]

    assert direct["status"] == "ok", direct
    assert behind["status"] == "fail"
    assert "3003" in behind["found"]
    assert "Host" in behind["advice"]
    assert f"origin {page!r}, and the host of the service is 'inner.example'" in server.log


NGINX = """
daemon off;
pid nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{behind};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
      {more}
    }}
  }}
}}
"""


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[[Server, str], str]]:
    """Start nginx in front of a server, with more configuration; returns its address."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    program = shutil.which("nginx", path=path) or require("nginx", "Debian: apt-get install nginx")
    running: list[subprocess.Popen[bytes]] = []

    def start(server: Server, more: str) -> str:
        port = free_port()
        place = tmp_path / str(port)
        place.mkdir()
        text = NGINX.format(port=port, behind=server.port, more=more)
        (place / "nginx.conf").write_text(text)
        command = [program, "-p", str(place), "-c", "nginx.conf", "-e", "stderr"]
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        wait_until(lambda: accepts(port), what="nginx")
        return f"http://127.0.0.1:{port}"

    yield start
    for process in running:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize(
    ("more", "settings", "status"),
    [
        ("", {}, "fail"),
        ("proxy_set_header Host $http_host;", {}, "ok"),
        ("", {"SERVICE_ALLOWED_ORIGINS": "http://127.0.0.1:*"}, "ok"),
        ("proxy_set_header Host inner.example;", {}, "fail"),
    ],
)
def test_host_is_compared_without_a_user(
    serve: Serve,
    tmp_path_factory: pytest.TempPathFactory,
    nginx: Callable[[Server, str], str],
    more: str,
    settings: dict[str, str],
    status: str,
) -> None:
    made = environment(tmp_path_factory) | settings
    server = serve(environment=made, **OPTIONS)
    found = look(made, nginx(server, more))
    assert found["host"]["status"] == status, found["host"]
    assert ("proxy_set_header Host" in found["host"]["advice"]) is (status == "fail")
    assert found["login"]["status"] == "skip"
    assert "--user NAME" in found["login"]["advice"]
