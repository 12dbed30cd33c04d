"""`realtime.asgi.application` in sites of several kinds, under daphne and uvicorn."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from realtime.auth import issue
from realtime.config.reader import load
from tests.live.api_client import connection, line, post, send
from tests.live.configurations import SHUTDOWN
from tests.live.site_process import COMMANDS, LISTENING, SiteProcess, site
from tests.protocol_client import open_client
from tests.server import API_KEY, ROOT, SECRET, Server

BOTH_SERVERS = ["daphne", "uvicorn"]


async def refused(address: str, **options: Any) -> int:
    """Return the HTTP status, or the close code, with which a client is turned away."""
    try:
        async with open_socket(address, proxy=None, **options) as socket:
            await socket.wait_closed()
            return socket.close_code or 0
    except InvalidStatus as refusal:
        return refusal.response.status_code


# paths of the service and of the site


OWN_ROUTES = "tests.site.asgi_own_routes:application"
"""A site with WebSocket routes of its own."""


@pytest.mark.parametrize("server_name", BOTH_SERVERS)
async def test_websocket_routes_of_the_site_are_kept(
    serve: Callable[..., Server], connect: Callable[..., Any], server_name: str
) -> None:
    server = serve(server=server_name, application=OWN_ROUTES)
    client = await connect(server)
    address = server.socket.replace("/connection/websocket", "/echo")
    async with open_socket(address, proxy=None) as own:
        await own.send("h\xe9")
        assert await own.recv() == "h\xe9"
        await own.send("close")
        with pytest.raises(ConnectionClosed) as closed:
            await own.recv()
        await client.quiet()

    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4321, "as you wish")


@pytest.mark.parametrize("server_name", BOTH_SERVERS)
async def test_unknown_websocket_path_is_refused(
    serve: Callable[..., Server], server_name: str
) -> None:
    server = serve(server=server_name)
    assert post(server, method="GET", path="/nowhere", headers={}).status == 404
    for path in ("/", "/connection", "/connection/websocket/", "/connection/websocketx", "/hello"):
        address = server.socket.replace("/connection/websocket", path)
        assert await refused(address) == 404, path
    disabled = serve(server=server_name, websocket_disable=True)
    assert await refused(disabled.socket) == 404
    assert post(disabled, method="GET", path="/connection/websocket").status == 404


@pytest.mark.parametrize("server_name", BOTH_SERVERS)
async def test_site_without_the_url_of_the_api_has_no_api(
    serve: Callable[..., Server], connect: Callable[..., Any], unique: str, server_name: str
) -> None:
    environment = {"DJANGO_SETTINGS_MODULE": "tests.site.settings_without_api"}
    server = serve(server=server_name, environment=environment)
    client = await connect(server)
    await client.result("subscribe", {"channel": unique})
    publish = {"function": "publish", "arguments": [unique, 1]}

    assert [post(server, line("channels"), path=path).status for path in ("/api", "/api/")] == [
        404,
        404,
    ]
    assert post(server, method="GET", path="/hello").body == b"hello"
    assert post(server, json.dumps(publish).encode(), path="/call/sync-view").status == 200
    assert await client.publication() == {"data": 1}


async def test_site_behind_a_path_prefix_is_served_below_it() -> None:
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "SERVICE_TOKEN_HMAC_SECRET_KEY": SECRET,
        "SERVICE_API_KEY": API_KEY,
    }
    command = [*COMMANDS["uvicorn"], "--root-path", "/site", "tests.site.asgi:application"]

    # the proxy in front has taken the prefix away
    with site(command, LISTENING["uvicorn"], environment) as process:
        assert post_to(process, line("channels")) == b'{"result":{"channels":[]}}\n'
        token = issue.connection_token(load({"token_hmac_secret_key": SECRET}), "17")
        async with open_client(process.socket, token=token) as client:
            await client.quiet()


def post_to(process: SiteProcess, body: bytes, key: str = API_KEY) -> bytes:
    """The body of the API's answer."""
    with connection(process) as opened:
        return send(opened, body, headers={"Authorization": f"apikey {key}"}).body


# broken options


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "recovery without history": ({"history_recover": True}, "history_recover"),
    "wrong type": ({"client_channel_limit": "many"}, "client_channel_limit"),
    "unknown option": ({"histroy_size": 5}, "histroy_size"),
    "bad namespace": ({"namespaces": [{"name": "x"}]}, "Namespace name 'x'"),
    "key that is none": ({"token_rsa_public_key": "nonsense"}, "token_rsa_public_key"),
    "bad pattern": ({"allowed_origins": ["https://[abc"]}, "https://[abc"),
}
"""Options, and what the log names."""


@pytest.mark.parametrize(
    ("broken", "server_name"), [*((name, "daphne") for name in BROKEN), ("bad pattern", "uvicorn")]
)
async def test_broken_options_are_logged_and_leave_the_site_alone(
    own_server: Callable[..., Server], broken: str, server_name: str
) -> None:
    options, named = BROKEN[broken]
    server = own_server(server=server_name, application=OWN_ROUTES, **options)
    echo = server.socket.replace("/connection/websocket", "/echo")
    for _ in range(2):
        answer = post(server, method="GET", path="/hello", headers={})
        assert (answer.status, answer.body) == (200, b"hello")
        async with open_socket(echo, proxy=None) as own:
            await own.send("hi")
            assert await own.recv() == "hi"
        assert await refused(server.socket, origin="https://a") in (503, 3004)
    assert post(server, line("info")).status == 503
    assert server.log.count("Could not start the real-time service") == 1
    assert named in server.log
    assert "Traceback" not in server.log


ELSEWHERE: dict[str, Any] = {
    "websocket_handler_prefix": "/ws",
    "sockjs_handler_prefix": 5,
    "health": True,
    "health_handler_prefix": "/state",
    "metrics_key": "k" * 16,
    "metrics_handler_prefix": "relative",
}
OURS = [
    *("/ws", "/connection/sockjs/info", "/connection/sse", "/connection/http_stream"),
    *("/connection/uni_sse", "/connection/events", "/connection/uni_websocket", "/emulation"),
    *("/state/live", "/state/ready", "/realtime/metrics", "/api", "/api/info"),
]


@pytest.mark.parametrize(
    ("server_name", "api"), [("daphne", "1"), ("uvicorn", "1"), ("granian", "0")]
)
async def test_with_broken_options_every_path_of_the_service_is_unavailable(
    own_server: Callable[..., Server], server_name: str, api: str
) -> None:
    """Args: `api` is "0" where a view of Django answers the server API."""
    server = own_server(server=server_name, environment={"TEST_API_SHELL": api}, **ELSEWHERE)

    for method, body in (("GET", b""), ("POST", b"{}")):
        found = {path: post(server, body, method=method, path=path).status for path in OURS}
        assert found == dict.fromkeys(OURS, 503)
    sockets = ("/ws", "/connection/sockjs/0/1/websocket", "/connection/uni_websocket")
    for path in sockets:
        address = server.socket.replace("/connection/websocket", path)
        assert await refused(address) == 503
    assert post(server, method="GET", path="/health/ready", headers={}).status == 503
    assert post(server, method="GET", path="/hello", headers={}).status == 200
    assert server.log.count("Could not start the real-time service") == 1
    assert "sockjs_handler_prefix" in server.log
    assert "Traceback" not in server.log


async def test_lifespan_starts_and_stops_under_uvicorn(
    own_server: Callable[..., Server],
) -> None:
    server = own_server(server="uvicorn")
    assert "Application startup complete." in server.log
    server.terminate()
    server.stop()
    assert "Application shutdown complete." in server.log
    assert "Traceback" not in server.log


async def test_site_without_daphne_works_under_uvicorn(
    serve: Callable[..., Server], connect: Callable[..., Any], unique: str, format_name: str
) -> None:
    environment = {"DJANGO_SETTINGS_MODULE": "tests.site.settings_without_daphne"}
    server = serve(server="uvicorn", environment=environment)
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": unique})
    server.publish(unique, 1)
    server.api("disconnect", user=unique)
    assert await client.publication() == {"data": 1}
    assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')


def test_site_without_daphne_does_not_import_it() -> None:
    code = "import sys, tests.site.asgi\nprint(sorted({'daphne', 'twisted'} & set(sys.modules)))"
    environment = {"DJANGO_SETTINGS_MODULE": "tests.site.settings_without_daphne"}

    finished = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert finished.stdout == "[]\n", finished.stderr


RUNSERVER = ["manage.py", "runserver", "--noreload", "127.0.0.1:0"]


def ready_site(directory: Path) -> dict[str, str]:
    """The environment in which the ready site keeps its files there."""
    return {
        "DJANGO_SETTINGS_MODULE": "messaging_project.settings",
        "DJANGO_DATA_DIR": str(directory),
    }


async def test_ready_site_is_served_by_runserver(tmp_path: Path, unique: str) -> None:
    with site(RUNSERVER, LISTENING["daphne"], ready_site(tmp_path)) as process:
        key, secret = (
            (tmp_path / name).read_text().strip() for name in ("api_key", "token_hmac_secret_key")
        )
        token = issue.connection_token(load({"token_hmac_secret_key": secret}), unique)
        async with open_client(process.socket, token=token) as client:
            await client.result("subscribe", {"channel": unique})

            commands = line("publish", {"channel": unique, "data": 1})
            commands += line("disconnect", {"user": unique})
            assert post_to(process, commands, key) == b'{"result":{}}\n' * 2

            assert await client.publication() == {"data": 1}
            # the reason shows that daphne's protocol was replaced in time
            assert await client.closed() == (
                3012,
                '{"reason":"force disconnect","reconnect":false}',
            )
        async with open_client(process.socket, token=token) as client:
            stopped = asyncio.create_task(asyncio.to_thread(process.stop))
            assert await client.closed() == SHUTDOWN
            await stopped
        assert "Traceback" not in process.log
