"""nginx in front of the service, as the kit and the page about deployment have it."""

from __future__ import annotations

import http.client
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from realtime.config.limit_options import LimitOptions
from realtime.config.options import Config
from tests.certificates import write_certificate
from tests.conftest import require
from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
KIT = ROOT / "deploy"
SITE = (KIT / "nginx" / "site.conf").read_text()
[PAGE] = re.findall(
    r"```nginx\n# /etc/nginx/conf\.d/mysite\.conf\n(.*?)```",
    (ROOT / "docs" / "deployment.md").read_text(),
    re.DOTALL,
)
UNIT = re.findall(
    r"^Environment=(.*)$", (KIT / "systemd" / "realtime.service").read_text(), re.MULTILINE
)
TOKEN = "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"
ADDRESSES = (
    "/connection/events?channel=news&token={}",
    "/connection/sse?cf_connect={}",
    "/connection/uni_sse?cf_connect={}",
    "/connection/sockjs/000/abcdefgh/jsonp?c=a&d={}",
    "/connection%2Fevents?token={}",
    "//connection/events?token={}",
    "/connection/../connection/events?token={}",
)
"""Each reaches a location of its own, or of the service, with a token."""


class Upstream(BaseHTTPRequestHandler):
    """Answers, and keeps what it was asked."""

    asked: list[str] = []  # noqa: RUF012, of one test at a time

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[ThreadingHTTPServer]:
    Upstream.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Nginx:
    """nginx with one of the configurations, whose files and ports are those of a test."""

    def __init__(self, directory: Path, text: str, upstream: int) -> None:
        self.port = free_port()
        self.logs = directory
        write_certificate(directory)
        text = re.sub(r"\bserver (site|127\.0\.0\.1):\d+;\n(\s+server .*\n)*", "", text)
        text = text.replace("keepalive 32;", f"server 127.0.0.1:{upstream};")
        text = re.sub(r"listen \d+( ssl)?;", f"listen 127.0.0.1:{self.port};", text)
        text = re.sub(r"ssl_certificate\S* .*\n", "", text)
        text = text.replace("/var/log/nginx", str(directory))
        (directory / "site.conf").write_text(text)
        # as Debian's and the image's own: the site has to say what it writes otherwise
        (directory / "nginx.conf").write_text(
            f"pid {directory}/pid; error_log {directory}/error.log warn; events {{}}\n"
            f"http {{ access_log {directory}/access.log combined;\n"
            + "".join(
                f"{name}_temp_path {directory}/{name};\n"
                for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            + f"include {directory}/site.conf; }}\n"
        )
        self._command = [require("nginx", "Debian's nginx-light"), "-c", f"{directory}/nginx.conf"]
        self._command += ["-e", f"{directory}/error.log"]

    def run(self, *arguments: str) -> str:
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def get(self, address: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest("GET", address)
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()
        return status

    def log(self, name: str, lines: int) -> str:
        """What is in a log, once it has this number of lines."""
        deadline = time.monotonic() + 10
        while (text := (self.logs / name).read_text()).count("\n") < lines:
            assert time.monotonic() < deadline, text
            time.sleep(0.01)
        return text


@pytest.fixture(params=[SITE, PAGE], ids=["kit", "page"])
def nginx(
    request: pytest.FixtureRequest, tmp_path: Path, upstream: ThreadingHTTPServer
) -> Iterator[Nginx]:
    found = Nginx(tmp_path, request.param, upstream.server_port)
    assert found.run("-t").count("successful") == 1
    found.run()
    yield found
    found.run("-s", "quit")


def test_tokens_in_addresses_are_in_no_log(nginx: Nginx, upstream: ThreadingHTTPServer) -> None:
    addresses = [each.format(TOKEN) for each in ADDRESSES]
    statuses = [nginx.get(address) for address in addresses]

    upstream.shutdown()
    upstream.server_close()  # errors are logged, too
    failed = [nginx.get(address) for address in addresses]

    log = nginx.log("access.log", len(statuses) + len(failed))
    assert statuses == [200] * len(statuses)
    assert failed == [502] * len(failed)
    assert [each.count(TOKEN) for each in Upstream.asked] == [1] * len(statuses)
    assert '"GET /connection/events HTTP/1.1" 200' in log
    assert '"GET /connection/events HTTP/1.1" 502' in log
    assert TOKEN not in log
    assert TOKEN not in nginx.log("error.log", 0)


@pytest.mark.parametrize(
    "variables",
    [
        yaml.safe_load((KIT / "compose.yaml").read_text())["x-site"]["environment"],
        yaml.safe_load((KIT / "kubernetes" / "configmap.yaml").read_text())["data"],
        dict(each.split("=", 1) for line in UNIT for each in shlex.split(line)),
    ],
    ids=["compose", "kubernetes", "systemd"],
)
def test_addresses_of_clients_have_a_rate(variables: dict[str, str]) -> None:
    """They are those that the one reverse proxy writes, in place of what clients send."""
    limits = LimitOptions(address_connection_rate=variables["SERVICE_ADDRESS_CONNECTION_RATE"])

    rate = limits.rate_of_addresses

    assert rate is not None
    assert rate.burst >= 100, "an office has one address"
    assert variables["SERVICE_TRUSTED_PROXIES"] == "1"
    assert Config().trusted_proxies == 0
    assert "X-Forwarded-For   $remote_addr;" in SITE
    assert "X-Forwarded-For   $proxy_add_x_forwarded_for;" in PAGE


def test_ingress_writes_no_addresses() -> None:
    """nginx of the controller has one format for all sites."""
    ingress = yaml.safe_load((KIT / "kubernetes" / "ingress.yaml").read_text())
    annotations = ingress["metadata"]["annotations"]
    assert annotations["nginx.ingress.kubernetes.io/enable-access-log"] == "false"
