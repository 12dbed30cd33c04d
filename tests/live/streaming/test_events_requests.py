"""Who may listen to channels by their address, and how a listener ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from realtime.auth import issue
from tests.conftest import CONFIG, connection_token
from tests.live.streaming.client import ask
from tests.live.streaming.listeners import EVENTS, LISTENERS, Event, address, listening
from tests.server import Server

PAGE = "https://example.org"


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**LISTENERS)


# who may listen


def error(body: bytes) -> tuple[int, str | None]:
    """Code and channel of an error."""
    told = json.loads(body)["error"]
    assert told["message"]
    return told["code"], told.get("channel")


@pytest.mark.parametrize(
    ("query", "status", "code", "channel"),
    [
        ("", 400, 107, None),
        ("channel=", 400, 107, None),
        ("channel=news&channel=", 400, 107, None),
        ("channel=news&channel=news", 400, 107, None),
        ("channel=news&format=xml", 400, 107, None),
        ("channel=news&since=a&since=b", 400, 107, None),
        ("channel=news&channel_token=a&channel_token=b", 400, 107, None),
        ("channel=a%0Ab", 400, 107, None),
        ("channel=news&channel=reset", 400, 107, None),
        ("&".join(f"channel={number}" for number in range(65)), 400, 107, None),
        ("channel=unknown:a", 400, 102, "unknown:a"),
        ("channel=%C3%A9", 400, 107, "é"),
        (f"channel={'x' * 256}", 400, 107, "x" * 256),
        ("channel=ns:a&channel=server_side:%3Cb%3E", 403, 103, "server_side:<b>"),
        ("channel=$private", 403, 103, "$private"),
        ("channel=dialog%2318", 403, 103, "dialog#18"),
        ("channel=$private&channel_token=x", 403, 103, "$private"),
    ],
)
async def test_refused_request_gets_an_error(
    server: Server, query: str, status: int, code: int, channel: str | None
) -> None:
    answer = await ask(server, "GET", f"{EVENTS}?{query}&token={connection_token('17')}")
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert answer.headers["cache-control"] == "no-store"
    assert error(answer.body) == (code, channel)
    assert b"<" not in answer.body


@pytest.mark.parametrize(
    ("token", "code"),
    [("", 3501), ("not.a.token", 3500), (connection_token("17", ttl=-60), 109)],
    ids=["none", "wrong", "expired"],
)
async def test_unknown_listener_is_refused(server: Server, token: str, code: int) -> None:
    answer = await ask(server, "GET", address("news", token=token))
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert error(answer.body) == (code, None)


async def test_limit_of_channels_counts(serve: Callable[..., Server]) -> None:
    server = serve(**LISTENERS, client_channel_limit=2)
    answer = await ask(server, "GET", address("a", "b", "c"))
    assert (answer.status, error(answer.body)) == (400, (106, "c"))


async def test_token_may_come_in_a_header(server: Server, unique: str) -> None:
    headers = {"Authorization": f"Bearer {connection_token('17')}"}
    for path in (address(f"long:{unique}", token=""), address(f"long:{unique}", token="wrong")):
        async with listening(server, path, headers) as listener:
            await listener.begun()


async def test_tokens_of_channels_come_in_their_order(server: Server, unique: str) -> None:
    def channel_token(user: str, channel: str) -> str:
        return issue.user_subscription_token(CONFIG, user, channel)

    private, open_ = f"$long:{unique}", f"long:{unique}"
    query = [("channel", open_), ("channel", private), ("token", connection_token("17"))]
    good = [*query, ("channel_token", ""), ("channel_token", channel_token("17", private))]
    async with listening(server, f"{EVENTS}?{urlencode(good)}") as listener:
        await listener.begun()
        await asyncio.to_thread(server.publish, private, 1)
        assert (await listener.event()).name == private

    others = [*query, ("channel_token", ""), ("channel_token", channel_token("18", private))]
    answer = await ask(server, "GET", f"{EVENTS}?{urlencode(others)}")
    assert (answer.status, error(answer.body)) == (403, (3500, private))


async def test_token_opens_channels_that_it_names(server: Server, unique: str) -> None:
    private, other = f"$long:{unique}", f"long:{unique}"
    token = connection_token("17", channels=[private, f"long:{unique}-not-asked"])
    async with listening(server, address(private, other, token=token)) as listener:
        await listener.begun()
        for channel in (f"long:{unique}-not-asked", private):
            await asyncio.to_thread(server.publish, channel, 1)
        assert (await listener.event()).name == private


# how it ends


async def test_listener_that_was_disconnected_stays_away(server: Server, unique: str) -> None:
    path = address(f"long:{unique}", token=connection_token(unique))
    async with listening(server, path) as listener:
        await listener.begun()
        server.api("disconnect", user=unique)
        (last,) = await listener.rest()

    assert (last.name, json.loads(last.data or "")) == (
        "disconnect",
        {"code": 3503, "reason": "force disconnect"},
    )
    answer = await ask(server, "GET", path, headers={"Last-Event-ID": listener.id})
    assert answer.status == 410


async def test_listener_stays_away_from_channels_that_the_server_ended(
    server: Server, unique: str
) -> None:
    one, other = f"long:{unique}", f"long:{unique}-2"
    path = address(one, other, token=connection_token(unique))
    async with listening(server, path) as listener:
        await listener.begun()
        await asyncio.to_thread(server.api, "unsubscribe", user=unique, channel=one)
        ended = await listener.event()
        await asyncio.to_thread(server.api, "unsubscribe", user=unique, channel="unknown")

    assert (ended.name, json.loads(ended.data or "")) == (
        "unsubscribe",
        {"channel": one, "code": 2000, "reason": "server unsubscribe"},
    )
    for channel in (one, other):
        server.publish(channel, 1)
    async with listening(server, path, {"Last-Event-ID": listener.id}) as listener:
        assert (await listener.event()).name == other
        await asyncio.to_thread(server.api, "unsubscribe", user=unique, channel=other)
        assert [event.name for event in await listener.rest()] == ["unsubscribe", "disconnect"]


async def test_expired_listener_comes_back_and_is_refused(
    serve: Callable[..., Server], unique: str
) -> None:
    server = serve(**LISTENERS, client_expired_close_delay=0)
    path = address(f"long:{unique}", token=connection_token("17", ttl=2))
    async with listening(server, path) as listener:
        await listener.begun()
        assert [event._replace(retry=None) for event in await listener.rest()] == [Event()]
    answer = await ask(server, "GET", path, headers={"Last-Event-ID": listener.id})
    assert (answer.status, error(answer.body)) == (401, (109, None))


async def test_history_that_is_removed_does_not_end_a_listener(server: Server, unique: str) -> None:
    channel = f"long:{unique}"
    async with listening(server, address(channel)) as listener:
        await listener.begun()
        await asyncio.to_thread(server.publish, channel, 1)
        await listener.event()
        await asyncio.to_thread(server.api, "history_remove", channel=channel)
        await asyncio.to_thread(server.publish, channel, 2)
        assert await listener.data() == 2


async def test_page_of_an_allowed_origin_is_served(serve: Callable[..., Server]) -> None:
    server = serve(**LISTENERS, allowed_origins=[PAGE])
    path = address("ns:news")

    preflight = await ask(
        server,
        "OPTIONS",
        path,
        headers={"Origin": PAGE, "Access-Control-Request-Headers": "authorization"},
    )
    async with listening(server, path, {"Origin": PAGE}) as listener:
        head = listener.exchange.headers

    assert preflight.status == 204
    assert preflight.headers["access-control-allow-methods"] == "GET, OPTIONS"
    assert preflight.headers["access-control-allow-headers"] == "authorization"
    for told in (preflight.headers, head):
        assert told["access-control-allow-origin"] == PAGE
        assert told["access-control-allow-credentials"] == "true"
