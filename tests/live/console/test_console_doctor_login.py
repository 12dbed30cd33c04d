"""The doctor tries a login: the session of a user, from a page of the site."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import pytest

from tests.live.configurations import Serve
from tests.live.console.command import Findings, findings, front_proxy
from tests.live.hooks_site import OPTIONS, create_user, environment
from tests.processes import run_python
from tests.server import ROOT


def look(made: Mapping[str, str], url: str, user: str) -> Findings:
    """What the doctor finds in a process of its own."""
    options = {"SERVICE_SESSION_AUTHENTICATION": "true"}
    command = ["-m", "django", "realtime", "doctor", "--json", "--url", url, "--user", user]
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

    direct = look(made, server.address, username)["login"]
    with front_proxy(server.port, change=replace_host) as proxy:
        page = proxy.address
        behind = look(made, page, username)["login"]

    assert direct["status"] == "ok", direct
    assert behind["status"] == "fail"
    assert "3003" in behind["found"]
    assert "Host" in behind["advice"]
    assert f"origin {page!r}, and the host of the service is 'inner.example'" in server.log
