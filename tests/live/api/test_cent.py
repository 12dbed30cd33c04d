"""The Python API client of the reference server, `cent`, against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cent import Client, RequestException, ResponseError

import realtime
from tests.live.api_client import OPTIONS, subscribe
from tests.live.configurations import Connect, Serve
from tests.server import API_KEY, Server


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(**OPTIONS)


@pytest.fixture
def cent(server: Server) -> Iterator[Client]:
    client = Client(server.address, api_key=API_KEY, timeout=10)
    yield client
    client.session.close()


async def test_publish_and_broadcast_reach_subscribers(
    server: Server, cent: Client, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(server)
    await subscribe(client, f"{unique}a", f"{unique}b")

    cent.publish(f"{unique}a", {"text": "h\xe9 <b>"}, uid="mine")
    cent.broadcast([f"{unique}a", f"{unique}b"], [1], uid="mine")

    assert [await client.push() for _ in range(3)] == [
        {"channel": f"{unique}a", "data": {"data": {"text": "h\xe9 <b>"}}},
        {"channel": f"{unique}a", "data": {"data": [1]}},
        {"channel": f"{unique}b", "data": {"data": [1]}},
    ]


async def test_unsubscribe_and_disconnect(
    server: Server, cent: Client, connect: Connect, unique: str
) -> None:
    client = await connect(server, user=unique)
    await subscribe(client, f"{unique}a", f"{unique}b")
    cent.unsubscribe(unique, f"{unique}a")
    assert await client.push() == {"type": 3, "channel": f"{unique}a", "data": {}}
    cent.unsubscribe(unique)
    assert await client.push() == {"type": 3, "channel": f"{unique}b", "data": {}}
    cent.disconnect(unique)
    assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')


async def test_presence_and_its_stats(
    server: Server, cent: Client, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(server, user=unique)
    await subscribe(client, channel)
    assert cent.presence(channel) == {client.client: {"user": unique, "client": client.client}}
    # this version has no method of its own for it
    assert cent.send("presence_stats", {"channel": channel}) == [
        {"result": {"num_clients": 1, "num_users": 1}}
    ]


def test_history_and_its_removal(cent: Client, unique: str) -> None:
    channel = f"kept:{unique}"
    cent.publish(channel, {"n": 1})
    cent.publish(channel, {"n": 2})
    assert [kept["data"] for kept in cent.history(channel)] == [{"n": 1}, {"n": 2}]
    cent.history_remove(channel)
    assert cent.history(channel) == []


def test_info(cent: Client) -> None:
    (node,) = cent.info()["nodes"]
    assert node["version"] == realtime.__version__


async def test_several_commands_in_one_request(
    server: Server, cent: Client, connect: Connect, unique: str
) -> None:
    client = await connect(server)
    await subscribe(client, unique)
    cent.add("publish", cent.get_publish_params(unique, 1))
    cent.add("publish", cent.get_publish_params("nope:a", 2))
    cent.add("broadcast", cent.get_broadcast_params([unique], 3))
    cent.add("channels", cent.get_channels_params())

    replies = cent.send()

    assert ["error" in reply for reply in replies] == [False, True, False, False]
    assert unique in replies[3]["result"]["channels"]
    assert [await client.publication() for _ in range(2)] == [{"data": 1}, {"data": 3}]


def test_errors_are_raised(cent: Client) -> None:
    with pytest.raises(ResponseError) as caught:
        cent.publish("nope:a", 1)
    assert caught.value.args == ({"code": 102, "message": "namespace not found"},)


def test_wrong_key_is_refused(server: Server) -> None:
    client = Client(server.address, api_key="wrong", timeout=10)
    with client.session, pytest.raises(RequestException, match="wrong status code: 401"):
        client.info()


@pytest.mark.parametrize("suffix", ["/", "/api", "/api/"])
def test_address_may_have_any_ending(server: Server, suffix: str) -> None:
    client = Client(server.address + suffix, api_key=API_KEY, timeout=10)
    with client.session:
        assert client.info()["nodes"]
