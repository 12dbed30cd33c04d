"""Sites below a path, as FORCE_SCRIPT_NAME says, and as a server is told, too.

The reverse proxy passes the whole path on, or removes the prefix: the service answers both, as
Django does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realtime.auth import issue
from realtime.config.reader import load
from tests.live.api_client import line, post
from tests.protocol_client import open_client
from tests.server import SECRET, Server

PREFIX = "/app"
SERVERS: dict[str, dict[str, Any]] = {
    "daphne": {"server": "daphne"},
    "daphne, told": {"server": "daphne", "arguments": ["--root-path", PREFIX]},
    "daphne, view of the API": {"server": "daphne", "environment": {"TEST_API_SHELL": "0"}},
    "python -m realtime": {"server": "realtime"},
    "uvicorn": {"server": "uvicorn"},
    "granian": {"server": "granian"},
    "granian, told": {"server": "granian", "arguments": ["--url-path-prefix", PREFIX]},
    "gunicorn": {"server": "gunicorn"},
}
OPTIONS: dict[str, Any] = {
    "http_stream": True,
    "sse": True,
    "uni_sse": True,
    "uni_http_stream": True,
    "uni_websocket": True,
    "events": True,
    "health": True,
    "metrics_key": "key",
    "admin": True,
    "admin_password": "a password of the test",
    "admin_secret": "a secret of the test",
}
PATHS = (
    "/connection/websocket",
    "/connection/sockjs/info",
    "/connection/sockjs/000/abcdefgh/xhr",
    "/connection/sockjs/000/abcdefgh/websocket",
    "/connection/http_stream",
    "/connection/sse",
    "/connection/uni_sse",
    "/connection/uni_http_stream",
    "/connection/uni_websocket",
    "/connection/events",
    "/emulation",
    "/api",
    "/api/info",
    "/realtime/live",
    "/realtime/ready",
    "/realtime/metrics",
    "/hello",
    "/panel/sign-in/",
    "/panel/admin/auth",
)
"""All that is served."""


def status(server: Server, path: str) -> int:
    """The status with which a method is refused: 404 if the path is nobody's."""
    return post(server, method="DELETE", path=path, headers={}).status


@pytest.fixture(params=SERVERS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    environment = {"DJANGO_SETTINGS_MODULE": "tests.site.settings_below_path"}
    how = dict(SERVERS[request.param])
    environment |= how.pop("environment", {})
    server = Server(tmp_path, OPTIONS, environment=environment, **how)
    yield server
    server.discard()


async def test_site_below_a_path_is_served_with_it_and_without_it(site: Server) -> None:
    refused = {path: status(site, path) for path in PATHS}
    below = {path: status(site, PREFIX + path) for path in PATHS}
    assert below == refused
    assert 404 not in refused.values()
    assert post(site, path=f"{PREFIX}x/api").status == 404

    for start in (PREFIX, ""):
        channels = post(site, line("channels"), path=f"{start}/api").body
        assert channels == b'{"result":{"channels":[]}}\n'
        page = post(site, method="GET", path=f"{start}/page", headers={}).body.decode()
        assert f'"endpoint": "ws://127.0.0.1:{site.port}/app/connection/websocket"' in page
        assert '"refreshEndpoint": "/app/realtime/' in page
        address = site.socket.replace("/connection", f"{start}/connection")
        token = issue.connection_token(load({"token_hmac_secret_key": SECRET}), "17")
        async with open_client(address, token=token) as client:
            await client.quiet()
