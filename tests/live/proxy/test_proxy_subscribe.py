"""The subscribe endpoint. docs/protocol.md, 7.4; order of checks, 3.6."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import (
    ALREADY_SUBSCRIBED,
    LIMIT_EXCEEDED,
    NAMESPACE_NOT_FOUND,
    PERMISSION_DENIED,
    Connect,
    Serve,
)
from tests.live.proxy.application import Application, proxied
from tests.protocol_client import ProtocolClient
from tests.server import Server


@pytest.mark.parametrize("answer", [{}, {"result": {}}])
async def test_answer_without_a_refusal_allows_it_for_good(
    server: Server,
    client: ProtocolClient,
    application: Application,
    format_name: str,
    unique: str,
    answer: dict[str, Any],
) -> None:
    application.answer("/subscribe", answer)
    # no `expires`: it does not expire
    assert await client.result("subscribe", {"channel": f"proxied:{unique}"}) == {}
    server.publish(f"proxied:{unique}", 1)
    assert (await client.publication())["data"] == 1


@pytest.mark.parametrize("kind", ["error", "failure"])
async def test_refused_client_is_not_subscribed_and_may_try_again(
    server: Server, client: ProtocolClient, application: Application, unique: str, kind: str
) -> None:
    channel = f"proxied:{unique}"
    application.answer(
        "/subscribe", {"error": {"code": 1001, "message": "no"}}, 200 if kind == "error" else 500
    )
    await client.error("subscribe", {"channel": channel})
    server.publish(channel, 1)
    await client.quiet()

    application.answer("/subscribe")

    assert await client.result("subscribe", {"channel": channel}) == {}
    assert len(application.requests) == 2


PRESENT: dict[str, Any] = {"name": "watched", "proxy_subscribe": True, "presence": True}


def watched(application: Application) -> dict[str, Any]:
    """As `proxied`, with presence, join and leave in a channel that is asked about."""
    options = proxied(application)
    watched = {**PRESENT, "join_leave": True}
    return {**options, "namespaces": [*options["namespaces"], watched]}


async def test_info_of_the_result_is_channel_info(
    serve: Serve, connect: Connect, application: Application, format_name: str, unique: str
) -> None:
    server = serve(**watched(application))
    channel = f"watched:{unique}"
    client = await connect(server, token=connection_token("17", info={"who": "I"}))
    application.answer("/subscribe", {"result": {"info": {"role": "<owner>"}, "b64info": "MQ=="}})

    await client.result("subscribe", {"channel": channel})

    info = {
        "user": "17",
        "client": client.client,
        "conn_info": {"who": "I"},
        "chan_info": {"role": "<owner>"},
    }
    assert await client.push() == {"type": 1, "channel": channel, "data": {"info": info}}
    presence = await client.result("presence", {"channel": channel})
    assert presence == {"presence": {client.client: info}}


@pytest.mark.parametrize(
    ("channel", "user", "error"),
    [
        ("$proxied:{}", "17", PERMISSION_DENIED),
        ("proxied:{}#17", "17", None),
        ("proxied:{}#18", "17", PERMISSION_DENIED),
        ("ns:{}", "17", None),  # the option is off
        ("proxied:{}", "", PERMISSION_DENIED),
        ("x" * 256, "17", LIMIT_EXCEEDED),
        ("nope:a", "17", NAMESPACE_NOT_FOUND),
        ("server_side:a", "17", PERMISSION_DENIED),
    ],
)
async def test_channel_that_the_options_decide_about_is_not_asked_about(
    server: Server,
    connect: Connect,
    application: Application,
    unique: str,
    channel: str,
    user: str,
    error: dict[str, Any] | None,
) -> None:
    client = await connect(server, user=user)
    reply = await client.call("subscribe", {"channel": channel.format(unique)})
    assert reply.get("error") == error
    assert application.requests == []


async def test_second_subscribe_is_refused_without_asking(
    client: ProtocolClient, application: Application, unique: str
) -> None:
    await client.result("subscribe", {"channel": f"proxied:{unique}"})
    error = await client.error("subscribe", {"channel": f"proxied:{unique}"})
    assert error == ALREADY_SUBSCRIBED
    assert len(application.requests) == 1
