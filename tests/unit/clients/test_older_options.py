"""What older names of channel options allow to clients of both generations, in both formats."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.conftest import subscription_token
from tests.server import SECRET
from tests.unit.clients.four_forms import FORMS, Form, FormClient
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock

DENIED, NOT_AVAILABLE = 103, 108
KEPT: dict[str, Any] = {"history_size": 3, "history_lifetime": 60}
OFF_FOR_CLIENTS = {1: NOT_AVAILABLE, 2: DENIED}
"""The error by generation."""

every_form = pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])


async def outcomes(
    clock: Clock, form: Form, options: dict[str, Any], user: str, *commands: dict[str, Any]
) -> list[dict[str, Any] | int]:
    """Connect as a user, and return results or error codes of commands.

    Args:
        options: those of the namespace ns.
        commands: each has its `method`; the channel is ns:a unless it has another.
    """
    namespace = {"name": "ns", **options}
    service = {"token_hmac_secret_key": SECRET, "client_anonymous": True, "v3_use_offset": True}
    node = Node(load({**service, "namespaces": [namespace]}))
    await node.start()
    try:
        client = FormClient(node, form)
        await client.connect(user)
        found = []
        for command in commands:
            if command.get("token") == "good":
                command = command | {"token": subscription_token(client.id, command["channel"])}
            found.append(await client.outcome(**({"channel": "ns:a"} | command)))
        return found
    finally:
        await stop(node, clock, SHUTDOWN_TIMEOUT)


def codes(found: list[dict[str, Any] | int]) -> list[int]:
    """The error codes, 0 for a result."""
    return [each if isinstance(each, int) else 0 for each in found]


SUBSCRIBE, PRESENCE = {"method": "subscribe"}, {"method": "presence"}
HISTORY = {"method": "history"}
PUBLISH = {"method": "publish", "data": 1}
PRIVATE = {"method": "subscribe", "channel": "$ns:a"}
BY_TOKEN = PRIVATE | {"token": "good"}


@every_form
@pytest.mark.parametrize(
    ("options", "user", "commands", "expected"),
    [
        pytest.param({}, "17", [SUBSCRIBE], [0], id="nothing"),
        pytest.param({}, "17", [PRIVATE, BY_TOKEN], [DENIED, 0], id="private"),
        pytest.param(
            {},
            "17",
            [SUBSCRIBE | {"channel": f"ns:a#{listed}"} for listed in ("18", "17,18")],
            [DENIED, 0],
            id="user-limited",
        ),
        pytest.param(
            {"server_side": True},
            "17",
            [SUBSCRIBE, SUBSCRIBE | {"channel": "ns:a#17"}],
            [DENIED, DENIED],
            id="server_side",
        ),
        pytest.param({}, "", [SUBSCRIBE], [DENIED], id="not anonymous"),
        pytest.param({"anonymous": True}, "", [SUBSCRIBE], [0], id="anonymous"),
        pytest.param({}, "17", [SUBSCRIBE, PUBLISH], [0, DENIED], id="no publish"),
        pytest.param({"publish": True}, "17", [PUBLISH], [0], id="publish"),
        pytest.param({"publish": True}, "", [PUBLISH], [0], id="publish, anonymous"),
        pytest.param(
            {"publish": True, "subscribe_to_publish": True},
            "17",
            [PUBLISH, SUBSCRIBE, PUBLISH],
            [DENIED, 0, 0],
            id="subscribe_to_publish",
        ),
        pytest.param(
            {"publish": True, "subscribe_to_publish": True, "anonymous": True},
            "",
            [PUBLISH, SUBSCRIBE, PUBLISH],
            [DENIED, 0, 0],
            id="subscribe_to_publish, anonymous",
        ),
        pytest.param({}, "17", [SUBSCRIBE, PRESENCE], [0, NOT_AVAILABLE], id="no presence"),
        pytest.param(
            {"presence": True}, "17", [PRESENCE, SUBSCRIBE, PRESENCE], [DENIED, 0, 0], id="presence"
        ),
        pytest.param(
            {"presence": True, "anonymous": True},
            "",
            [SUBSCRIBE, PRESENCE],
            [0, 0],
            id="presence, anonymous",
        ),
        pytest.param({}, "17", [SUBSCRIBE, HISTORY], [0, NOT_AVAILABLE], id="no history"),
        pytest.param(KEPT, "17", [HISTORY, SUBSCRIBE, HISTORY], [DENIED, 0, 0], id="history"),
        pytest.param(
            KEPT | {"anonymous": True}, "", [SUBSCRIBE, HISTORY], [0, 0], id="history, anonymous"
        ),
    ],
)
async def test_right_is_the_same_in_all_forms(
    clock: Clock,
    form: Form,
    options: dict[str, Any],
    user: str,
    commands: list[dict[str, Any]],
    expected: list[int],
) -> None:
    assert codes(await outcomes(clock, form, options, user, *commands)) == expected


@every_form
async def test_what_is_disabled_for_clients_has_the_error_of_the_generation(
    clock: Clock, form: Form
) -> None:
    options: dict[str, Any] = {"presence": True, "presence_disable_for_client": True}
    options |= {**KEPT, "history_disable_for_client": True}
    found = codes(await outcomes(clock, form, options, "17", SUBSCRIBE, PRESENCE, HISTORY))
    assert found == [0, OFF_FOR_CLIENTS[form.generation], OFF_FOR_CLIENTS[form.generation]]


@every_form
async def test_server_side_channel_opens_to_a_token_of_the_second_generation_only(
    clock: Clock, form: Form
) -> None:
    found = codes(await outcomes(clock, form, {"server_side": True}, "17", BY_TOKEN))
    assert found == [DENIED if form.generation == 1 else 0]


@every_form
@pytest.mark.parametrize("recovers", [False, True])
async def test_history_recover_makes_subscriptions_recoverable(
    clock: Clock, form: Form, recovers: bool
) -> None:
    options = KEPT | {"history_recover": recovers}
    (result,) = await outcomes(clock, form, options, "17", SUBSCRIBE)
    assert isinstance(result, dict)
    assert result.get("recoverable", False) is recovers
