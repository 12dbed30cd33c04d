"""`channel_max_length` holds for every command, in both generations and formats."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.clients.four_forms import FORMS, Form, FormClient
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock

LONGEST = 20
TOO_LONG = {1: 106, 2: 107}
"""The error by generation."""
DENIED = 103
OPTIONS: dict[str, Any] = {
    "token_hmac_secret_key": SECRET,
    "v3_use_offset": True,
    "channel_max_length": LONGEST,
    "namespaces": [
        {
            "name": "open",
            "publish": True,
            "presence": True,
            "history_size": 5,
            "history_lifetime": 60,
            "allow_presence_for_client": True,
            "allow_history_for_client": True,
        }
    ],
}
NAME = "open:".ljust(LONGEST + 1, "x")

every_form = pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    made = Node(load(OPTIONS))
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


def code(outcome: dict[str, Any] | int) -> int:
    """The error code, 0 for a result."""
    return outcome if isinstance(outcome, int) else 0


@every_form
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("subscribe", {}),
        ("publish", {"data": 1}),
        ("presence", {}),
        ("presence_stats", {}),
        ("history", {}),
    ],
)
async def test_command_with_a_name_that_is_too_long_is_refused(
    node: Node, form: Form, method: str, params: dict[str, Any]
) -> None:
    client = FormClient(node, form)
    await client.connect("17")
    fits = await client.outcome(method, channel=NAME[:-1], **params)
    longer = await client.outcome(method, channel=NAME, **params)
    assert (code(fits), code(longer)) == (0, TOO_LONG[form.generation])


@every_form
async def test_server_side_channel_with_a_name_that_is_too_long_refuses_connect(
    node: Node, form: Form
) -> None:
    client = FormClient(node, form)
    token = connection_token("17", channels=[NAME])
    assert await client.outcome("connect", token=token) == TOO_LONG[form.generation]


@pytest.mark.parametrize("form", [form for form in FORMS if form.generation == 2])
async def test_connect_leaves_out_what_it_asks_for_by_a_name_that_is_too_long(
    node: Node, form: Form
) -> None:
    client = FormClient(node, form)
    asked: dict[str, Any] = {NAME[:-1]: {}, NAME: {}}
    result = await client.call("connect", token=connection_token("17"), subs=asked)
    assert list(result["subs"]) == [NAME[:-1]]
