"""connect: the site says who a client without a token is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import create_user
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

FAILURE = {"code": 100, "message": "internal server error"}


@pytest.fixture(scope="module")
def server(site: Serve) -> Server:
    """The site whose hooks do what they are told."""
    return site("strange", hook_timeout=2)


async def try_connect(connect: Connect, server: Server, answer: str, **data: Any) -> dict[str, Any]:
    """Connect with data that tell the hook what to answer; returns the reply."""
    client = await connect(server, user=None, connected=False)
    reply: dict[str, Any] = await client.call("connect", {"data": {"answer": answer} | data})
    return reply


async def test_connected_says_everything(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    data = {"user": unique, "channel": f"news-{unique}"}
    reply = await try_connect(connect, server, "all", **data)

    result = reply["result"]
    assert result["data"] == {"welcome": True}
    assert list(result["subs"]) == [f"news-{unique}"]
    present = server.api("presence", channel=f"news-{unique}")["result"]["presence"]
    assert present[result["client"]] == {
        "user": unique,
        "client": result["client"],
        "conn_info": {"name": "Ann"},
    }


async def test_server_side_channel_receives(
    newcomer: ProtocolClient, server: Server, unique: str, format_name: str
) -> None:
    data = {"answer": "all", "user": unique, "channel": f"news-{unique}"}
    await newcomer.result("connect", {"data": data})
    server.publish(f"news-{unique}", {"n": 1})
    assert (await newcomer.publication())["data"] == {"n": 1}


async def test_channels_may_be_a_query(server: Server, connect: Connect, unique: str) -> None:
    groups = [f"{unique}-1", f"{unique}-2"]
    _, pk = create_user(server, *groups)
    reply = await try_connect(connect, server, "query of channels", user=pk, pk=pk)
    assert sorted(reply["result"]["subs"]) == groups


@pytest.mark.parametrize("answer", ["anonymous", "anonymous user"])
async def test_anonymous_client_needs_no_option(
    newcomer: ProtocolClient, unique: str, answer: str
) -> None:
    await newcomer.result("connect", {"data": {"answer": answer}})
    assert await newcomer.result("subscribe", {"channel": f"ask:none-{unique}"}) == {}
    presence = await newcomer.result("presence", {"channel": f"ask:none-{unique}"})
    assert [info["user"] for info in presence["presence"].values()] == [""]
    error = await newcomer.error("subscribe", {"channel": unique})
    assert error["code"] == 103  # the top level is not `anonymous`


async def test_hook_is_told_what_the_client_sent(
    server: Server, connect: Connect, format_name: str
) -> None:
    client = await connect(
        server, user=None, connected=False, additional_headers={"User-Agent": "test/1"}
    )
    params = {"data": {"echo": ["é", 1.5]}, "name": "js", "version": "1.0"}

    result = await client.result("connect", params)

    assert result["data"] == {
        "data": {"echo": ["é", 1.5]},
        "name": "js",
        "version": "1.0",
        "agent": "test/1",
        "protocol": format_name,
    }


async def test_data_may_be_null(server: Server, connect: Connect) -> None:
    result = (await try_connect(connect, server, "data null"))["result"]
    assert "data" in result
    assert result["data"] is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("error", {"code": 1010, "message": "not today"}),
        ("past", {"code": 110, "message": "expired"}),
        ("unknown namespace", {"code": 102, "message": "namespace not found"}),
        ("failure", FAILURE),
        ("text", FAILURE),
        ("slow", FAILURE),
    ],
)
async def test_refused_client_gets_an_error_and_may_try_again(
    newcomer: ProtocolClient, answer: str, error: dict[str, Any]
) -> None:
    assert await newcomer.error("connect", {"data": {"answer": answer}}) == error
    await newcomer.result("connect", {"token": connection_token("17")})


@pytest.mark.parametrize(
    ("answer", "closing"),
    [
        ("disconnect", (4010, '{"reason":"go away","reconnect":false}')),
        ("nobody", (3003, '{"reason":"bad request","reconnect":false}')),
    ],
)
async def test_refused_client_is_disconnected(
    newcomer: ProtocolClient, answer: str, closing: tuple[int, str], format_name: str
) -> None:
    await newcomer.send("connect", {"data": {"answer": answer}})
    assert await newcomer.closed() == closing


async def test_client_nobody_knows_is_anonymous_where_that_is_allowed(
    site: Serve, connect: Connect
) -> None:
    server = site("strange", client_anonymous=True)
    reply = await try_connect(connect, server, "nobody")
    assert "error" not in reply


async def test_token_wins_and_the_hook_is_not_asked(newcomer: ProtocolClient, unique: str) -> None:
    params = {"data": {"answer": "error"}, "token": connection_token(unique)}
    await newcomer.result("connect", params)
    assert await newcomer.result("subscribe", {"channel": f"a#{unique}"}) == {}


async def test_data_that_are_no_json_are_a_bad_request(server: Server, connect: Connect) -> None:
    client = await connect(server, user=None, connected=False, format_name="protobuf")
    assert (await client.error("connect", {"data": b"{"}))["code"] == 107


async def test_failure_is_in_the_log_with_its_traceback(server: Server, connect: Connect) -> None:
    await try_connect(connect, server, "failure")
    wait_until(lambda: "LookupError: the hook is broken" in server.log, what="the traceback")
    assert "tests.site.strange.realtime.connect failed" in server.log
    assert "Traceback (most recent call last)" in server.log


async def test_answer_that_cannot_be_used_is_in_the_log(server: Server, connect: Connect) -> None:
    await try_connect(connect, server, "text")
    why = "realtime.connect gave an answer that cannot be used: Connected or None expected, not str"
    wait_until(lambda: why in server.log, what="the reason")
