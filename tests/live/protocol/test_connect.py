"""connect: the order of checks, the reply, anonymous and insecure servers.

docs/protocol.md, 3.1, 3.3 and 3.13.
"""

from __future__ import annotations

import re

import pytest

import realtime
from tests.conftest import connection_token
from tests.live.configurations import (
    BAD_REQUEST,
    CONNECTION_LIMIT,
    INSECURE,
    INVALID_TOKEN,
    LIMITED,
    MAIN,
    NAMESPACE_NOT_FOUND,
    NOT_AVAILABLE,
    PERMISSION_DENIED,
    PERSONAL_AT_TOP,
    TOKEN_EXPIRED,
    Connect,
    Options,
    Serve,
    info_of,
)
from tests.live.signing import sign

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

# the reply


async def test_reply_holds_a_client_id_and_the_version(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)

    result = await client.result("connect", {"token": connection_token("17")})

    assert set(result) == {"client", "version"}
    assert UUID4.fullmatch(result["client"])
    assert result["version"] == realtime.__version__


async def test_two_connections_have_two_client_ids(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    first, second = await connect(serve(**MAIN)), await connect(serve(**MAIN))

    assert first.client != second.client


async def test_reply_to_an_expiring_token_holds_expires_and_ttl(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)

    result = await client.result("connect", {"token": connection_token("17", ttl=300)})

    assert result["expires"] is True
    assert 290 <= result["ttl"] <= 300


async def test_reply_holds_the_server_side_subscriptions(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    plain, recoverable = unique, f"recover:{unique}"
    token = connection_token("17", channels=[recoverable, plain, plain])

    subs = (await client.result("connect", {"token": token}))["subs"]

    epoch = subs[recoverable].pop("epoch")
    assert epoch
    assert subs == {plain: {}, recoverable: {"recoverable": True}}


async def test_maps_are_written_with_sorted_keys(
    serve: Serve, connect: Connect, unique: str
) -> None:
    channels = [f"{unique}{letter}" for letter in "cab"]
    client = await connect(serve(**MAIN), token=connection_token("17", channels=channels))

    frame = str(client.frames[0])

    assert re.findall(rf"{unique}\w", frame) == sorted(channels)


async def test_joins_in_server_side_channels_follow_the_connect_reply(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"joined:{unique}"

    client = await connect(serve(**MAIN), token=connection_token("17", channels=[channel]))

    push = {"type": 1, "channel": channel, "data": {"info": info_of(client)}}
    assert await client.push() == push
    assert client.received[1:] == [{"result": push}]


async def test_server_side_subscription_can_be_ended_and_then_follows_the_rules_for_clients(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"server_side:{unique}"
    client = await connect(serve(**MAIN), token=connection_token("17", channels=[channel]))
    again = await client.error("subscribe", {"channel": channel})
    assert again == {"code": 105, "message": "already subscribed"}

    assert await client.result("unsubscribe", {"channel": channel}) == {}

    assert await client.error("subscribe", {"channel": channel}) == PERMISSION_DENIED


async def test_parameters_of_newer_clients_are_accepted(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    params = {
        "token": connection_token("17"),
        "data": {"lang": "de"},
        "name": "js",
        "version": "1.0",
        "subs": {"unknown:channel": {"recover": True, "offset": 5, "epoch": "x"}, "other": None},
    }

    assert set(await client.result("connect", params)) == {"client", "version"}


# table 3.1, in order


@pytest.mark.parametrize(
    "params",
    [
        '{"token":5}',
        '{"subs":[]}',
        '{"subs":{"a":5}}',
        '{"subs":{"a":{"offset":-1}}}',
        '{"name":1}',
        "[]",
        '"x"',
    ],
)
async def test_undecodable_params_are_a_bad_request(
    serve: Serve, connect: Connect, params: str
) -> None:
    client = await connect(serve(**INSECURE), connected=False)

    await client.send_params("connect", params.encode())

    assert await client.closed() == BAD_REQUEST


async def test_undecodable_protobuf_params_are_a_bad_request(
    serve: Serve, connect: Connect
) -> None:
    client = await connect(serve(**INSECURE), connected=False, format_name="protobuf")

    await client.send_params("connect", b"\x0a\x05ab")

    assert await client.closed() == BAD_REQUEST


@pytest.mark.parametrize(
    "options", [MAIN, INSECURE, PERSONAL_AT_TOP], ids=["secure", "insecure", "anonymous"]
)
async def test_bad_token_is_invalid_also_where_none_is_needed(
    serve: Serve, connect: Connect, format_name: str, options: Options
) -> None:
    client = await connect(serve(**options), connected=False)

    await client.send("connect", {"token": "no.token.atall"})

    assert await client.closed() == INVALID_TOKEN


@pytest.mark.parametrize(
    "options", [MAIN, INSECURE, PERSONAL_AT_TOP], ids=["secure", "insecure", "anonymous"]
)
async def test_expired_token_is_error_109_also_where_none_is_needed(
    serve: Serve, connect: Connect, format_name: str, options: Options
) -> None:
    client = await connect(serve(**options), connected=False)

    error = await client.error("connect", {"token": connection_token("17", ttl=-10)})

    assert error == TOKEN_EXPIRED


async def test_signature_is_checked_before_expiry(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)

    await client.send("connect", {"token": sign({"sub": "17", "exp": 1}, key="other")})

    assert await client.closed() == INVALID_TOKEN


async def test_expiry_is_checked_before_server_side_channels(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    token = sign({"sub": "17", "exp": 1, "channels": ["nope:a"]})

    assert await client.error("connect", {"token": token}) == TOKEN_EXPIRED


async def test_server_side_channels_are_checked_before_the_connection_limit(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**LIMITED)
    for _ in range(2):
        await connect(server, user=unique)
    client = await connect(server, connected=False)

    token = connection_token(unique, channels=["nope:a"])

    assert await client.error("connect", {"token": token}) == NAMESPACE_NOT_FOUND


@pytest.mark.parametrize("params", [None, {}, {"token": ""}], ids=["no params", "none", "empty"])
async def test_connect_without_token_is_a_bad_request(
    serve: Serve, connect: Connect, format_name: str, params: dict[str, str] | None
) -> None:
    client = await connect(serve(**MAIN), connected=False)

    await client.send("connect", params)

    assert await client.closed() == BAD_REQUEST


# client_user_connection_limit


async def test_connection_beyond_the_limit_of_a_user_is_closed(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**LIMITED)
    first, second = [await connect(server, user=unique) for _ in range(2)]
    third = await connect(server, connected=False)

    await third.send("connect", {"token": connection_token(unique)})

    assert await third.closed() == CONNECTION_LIMIT
    await first.result("ping")
    await second.result("ping")


async def test_connection_limit_does_not_count_anonymous_users(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    server = serve(**LIMITED)

    clients = [await connect(server, user="") for _ in range(4)]

    for client in clients:
        await client.result("ping")


async def test_closed_connection_no_longer_counts_towards_the_limit(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**LIMITED)
    first, _ = [await connect(server, user=unique) for _ in range(2)]
    await first.send_params("subscribe", b"5")
    assert await first.closed() == BAD_REQUEST

    again = await connect(server, user=unique)

    await again.result("ping")


# client_anonymous and client_insecure


async def test_client_without_token_is_anonymous_where_that_is_allowed(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**PERSONAL_AT_TOP), user=None)
    await client.result("subscribe", {"channel": unique})

    result = await client.result("presence", {"channel": unique})

    assert result == {"presence": {client.client: info_of(client, user="")}}


async def test_insecure_server_opens_publish_and_anonymous_access(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**INSECURE), user=None)

    assert await client.result("subscribe", {"channel": unique}) == {}
    assert await client.result("publish", {"channel": unique, "data": 1}) == {}

    assert await client.publication() == {"data": 1, "info": info_of(client, user="")}


async def test_insecure_server_ignores_the_expiry_of_a_valid_token(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**INSECURE), connected=False)

    result = await client.result("connect", {"token": connection_token("17", ttl=300)})

    assert set(result) == {"client", "version"}


@pytest.mark.parametrize(
    ("channel", "error"),
    {
        "$p": PERMISSION_DENIED,
        "a#18": PERMISSION_DENIED,
        "nope:a": NAMESPACE_NOT_FOUND,
        "server_side:a": PERMISSION_DENIED,
        "proxied:a": NOT_AVAILABLE,
    }.items(),
)
async def test_insecure_server_keeps_the_other_checks_of_subscribe(
    serve: Serve, connect: Connect, format_name: str, channel: str, error: dict[str, object]
) -> None:
    client = await connect(serve(**INSECURE))

    assert await client.error("subscribe", {"channel": channel}) == error


async def test_insecure_server_keeps_subscribe_to_publish(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**INSECURE))
    params = {"channel": f"closed:{unique}", "data": 1}

    assert await client.error("publish", params) == PERMISSION_DENIED
