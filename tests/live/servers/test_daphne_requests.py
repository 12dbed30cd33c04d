"""What daphne takes from a request before the application runs: headers, paths, bodies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidStatus

from realtime.auth import issue
from realtime.config.reader import load
from tests.live.api_client import AUTHORIZED, line
from tests.live.raw_http import open_exchange
from tests.protocol_client import open_client
from tests.server import SECRET, Server

ROOT_PATH = "Daphne-Root-Path"


# the path at which the site is mounted


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve()


async def test_client_cannot_name_the_path_at_which_the_site_is_mounted(server: Server) -> None:
    headers = {**AUTHORIZED, ROOT_PATH: "/static"}

    exchange = await open_exchange(server, "POST", "/static/api", line("channels"), headers)
    await exchange.begin()
    await exchange.close()
    with pytest.raises(InvalidStatus):
        async with open_socket(
            server.socket.replace("/connection", "/static/connection"),
            proxy=None,
            additional_headers={ROOT_PATH: "/static"},
        ):
            pass

    assert exchange.status == 404


async def test_reverse_proxy_names_the_path_where_the_option_says_so(
    serve: Callable[..., Server],
) -> None:
    server = serve(proxy_sets_root_path=True)
    headers = {**AUTHORIZED, ROOT_PATH: "/static"}

    exchange = await open_exchange(server, "POST", "/static/api", line("channels"), headers)
    await exchange.begin()
    await exchange.close()
    async with open_client(
        server.socket.replace("/connection", "/static/connection"),
        token=issue.connection_token(load({"token_hmac_secret_key": SECRET}), "17"),
        additional_headers={ROOT_PATH: "/static"},
    ) as client:
        await client.quiet()

    assert exchange.status == 200


@pytest.mark.parametrize("trusted", [False, True])
async def test_redirects_hold_no_part_of_a_header(
    serve: Callable[..., Server], trusted: bool
) -> None:
    server = serve(proxy_sets_root_path=trusted)

    exchange = await open_exchange(
        server,
        "GET",
        "//evil.example/connection/sockjs" if trusted else "/connection/sockjs",
        headers={ROOT_PATH: "//evil.example"},
    )
    await exchange.begin()
    await exchange.close()

    assert (exchange.status, exchange.headers["location"]) == (301, "./sockjs/")
