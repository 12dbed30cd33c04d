"""Observers receive channels; subscribers, presence and counts do not show them."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.auth import issue
from realtime.config import sources
from tests.conftest import connection_token
from tests.live.clusters import presence, presence_stats
from tests.live.configurations import (
    EXPIRED,
    INSECURE,
    INVALID_TOKEN,
    OFFSET,
    PERMISSION_DENIED,
    Connect,
    Serve,
    info_of,
)
from tests.server import Server


def token_for(*channels: str, ttl: float = 60) -> str:
    """Sign an observer's token with the SECRET_KEY of the servers of `serve`."""
    return issue.observer_token(sources.observer_keys()[0], channels, ttl=ttl)


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(**OFFSET)


# receiving


@pytest.mark.parametrize(
    "channel",
    ["{}", "server_side:{}", "ns:{}", "${}", "{}#somebody", "present:{}", "proxied:{}"],
)
async def test_observer_receives_what_is_published_whatever_the_options_allow(
    server: Server, connect: Connect, unique: str, format_name: str, channel: str
) -> None:
    channel = channel.format(unique)
    observer = await connect(server, token=token_for(channel, f"{unique}-other"))
    server.publish(channel, {"a": 1})
    server.publish(f"{unique}-other", 2)
    assert await observer.push() == {"channel": channel, "data": {"data": {"a": 1}}}
    assert await observer.push() == {"channel": f"{unique}-other", "data": {"data": 2}}


async def test_observer_is_not_present_and_nobody_hears_that_it_comes_and_goes(
    server: Server, connect: Connect, unique: str
) -> None:
    channel = f"joined:{unique}"
    subscriber = await connect(server, user=unique)
    await subscriber.result("subscribe", {"channel": channel})
    await subscriber.push()  # its own join
    observer = await connect(server, token=token_for(channel))
    assert presence(server, channel) == {subscriber.client: info_of(subscriber, unique)}
    assert presence_stats(server, channel) == (1, 1)
    await observer.abort()
    await subscriber.quiet()
    assert presence(server, channel) == {subscriber.client: info_of(subscriber, unique)}


async def test_disconnecting_a_user_does_not_reach_observers(
    server: Server, connect: Connect, unique: str
) -> None:
    observer, client = await connect(server, token=token_for(unique)), await connect(server, unique)
    server.api("disconnect", user=unique)
    server.api("unsubscribe", user=unique)
    assert (await client.closed())[0] == 3012
    server.publish(unique, 1)
    assert await observer.publication() == {"data": 1}


async def test_observer_recovers_what_it_missed(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"recover:{unique}"
    server.publish(channel, 1)
    first = await connect(server, token=token_for(channel), connected=False)
    reply = await first.result("connect", {"token": token_for(channel)})
    position = reply["subs"][channel]
    assert position["recoverable"]
    await first.abort()
    server.publish(channel, 2)

    again = await connect(server, token=token_for(channel), connected=False)
    since = {"recover": True, "offset": position["offset"], "epoch": position["epoch"]}
    reply = await again.result("connect", {"token": token_for(channel), "subs": {channel: since}})

    sub = reply["subs"][channel]
    assert sub["recovered"]
    assert [publication["data"] for publication in sub["publications"]] == [2]


# nothing else

COMMANDS: dict[str, dict[str, Any]] = {
    "subscribe": {"channel": "{}-other"},
    "unsubscribe": {"channel": "{}"},
    "publish": {"channel": "open:{}", "data": b"1"},
    "presence": {"channel": "{}"},
    "presence_stats": {"channel": "{}"},
    "history": {"channel": "{}"},
    "rpc": {"method": "m", "data": b"1"},
    "sub_refresh": {"channel": "{}", "token": "x"},
}


@pytest.mark.parametrize("options", [OFFSET, INSECURE], ids=["strict", "insecure"])
async def test_observer_may_do_nothing_but_watch(
    serve: Serve, connect: Connect, unique: str, format_name: str, options: dict[str, Any]
) -> None:
    server = serve(**options)
    observer = await connect(server, token=token_for(unique, f"open:{unique}"))
    for method, params in COMMANDS.items():
        named = {name: str(value).format(unique) for name, value in params.items()}
        if "data" in params:
            named["data"] = params["data"]
        assert await observer.error(method, named) == PERMISSION_DENIED
    await observer.send("send", {"data": b"1"})
    assert await observer.result("ping") == {}
    server.publish(unique, 1)
    assert await observer.publication() == {"data": 1}
    await observer.quiet()


async def test_forged_token_is_refused(server: Server, connect: Connect, unique: str) -> None:
    """As all that `tests/unit/auth/test_observer_tokens.py` has."""
    client = await connect(server, connected=False)
    forged = issue.observer_token(b"a secret that is long enough for SHA-256", [unique], ttl=60)
    await client.send("connect", {"token": forged})
    assert await client.closed() == INVALID_TOKEN


# tokens


@pytest.mark.parametrize("options", [OFFSET, INSECURE], ids=["strict", "insecure"])
async def test_observer_that_does_not_refresh_is_closed_as_expired(
    serve: Serve, connect: Connect, unique: str, options: dict[str, Any]
) -> None:
    options = {**options, "client_expired_close_delay": 1}
    observer = await connect(serve(**options), token=token_for(unique, ttl=2))
    assert await observer.closed() == EXPIRED


async def test_observer_refreshes_with_another_token_for_the_same_channels(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    observer = await connect(server, token=token_for(unique, f"{unique}b", ttl=2))
    token = token_for(f"{unique}b", unique, ttl=300)
    result = await observer.result("refresh", {"token": token})
    assert result["expires"]
    assert 290 <= result["ttl"] <= 300
    server.publish(unique, 1)
    assert await observer.publication() == {"data": 1}


@pytest.mark.parametrize("other", ["more", "fewer", "different", "ordinary"])
async def test_observer_may_not_refresh_with_a_token_for_something_else(
    server: Server, connect: Connect, unique: str, other: str
) -> None:
    names = [unique, f"{unique}b"]
    tokens = {
        "more": token_for(*names, f"{unique}c"),
        "fewer": token_for(unique),
        "different": token_for(unique, f"{unique}c"),
        "ordinary": connection_token("17", ttl=60, channels=names),
    }
    observer = await connect(server, token=token_for(*names))
    await observer.send("refresh", {"token": tokens[other]})
    assert await observer.closed() == INVALID_TOKEN


async def test_client_may_not_refresh_with_a_token_of_an_observer(
    server: Server, connect: Connect, unique: str
) -> None:
    client = await connect(server, token=connection_token(unique, ttl=60, channels=[unique]))
    await client.send("refresh", {"token": token_for(unique)})
    assert await client.closed() == INVALID_TOKEN
