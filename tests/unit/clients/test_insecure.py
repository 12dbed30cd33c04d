"""What `client_insecure` opens: presence and history, to clients of the second generation."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.node.node import Node
from tests.unit.clients.conftest import Connect
from tests.unit.node.node_parts import Connection
from tests.unit.parts import turns

RESTRICTED: list[dict[str, Any]] = [
    {"name": "nothing"},
    {"name": "kept", "presence": True, "history_size": 3, "history_lifetime": 300},
    {
        "name": "closed",
        "presence": True,
        "join_leave": True,
        "force_push_join_leave": False,
        "history_size": 3,
        "history_lifetime": 300,
        **dict.fromkeys(
            [
                "allow_presence_for_client",
                "allow_presence_for_anonymous",
                "allow_history_for_client",
                "allow_history_for_anonymous",
            ],
            False,
        ),
    },
]
INSECURE = {"namespaces": RESTRICTED, "client_insecure": True}


@pytest.mark.parametrize("options", [INSECURE], indirect=True)
@pytest.mark.parametrize("user", ["", "17"])
@pytest.mark.parametrize("method", ["presence", "presence_stats", "history"])
@pytest.mark.parametrize(
    ("channel", "error"), [("nothing:a", 108), ("kept:a", None), ("closed:a", None), ("no:a", 102)]
)
async def test_insecure_service_opens_presence_and_history(
    connect: Connect, user: str, method: str, channel: str, error: int | None
) -> None:
    connection = await connect(user)
    assert (await connection.call(method, channel=channel)).get("error") == error


@pytest.mark.parametrize("options", [INSECURE], indirect=True)
async def test_insecure_service_gives_what_comes_with_presence_and_history(
    connect: Connect,
) -> None:
    connection, other = await connect(""), await connect()
    asked = {"positioned": True, "recoverable": True, "join_leave": True}
    result = await connection.call("subscribe", channel="closed:a", **asked)
    await other.call("subscribe", channel="closed:a")
    await turns()
    assert result["positioned"]
    assert result["recoverable"]
    assert "join" in connection.kinds("closed:a")


@pytest.mark.parametrize("options", [INSECURE], indirect=True)
async def test_insecure_service_opens_neither_to_older_clients(second_node: Node) -> None:
    connection = Connection(second_node)
    await connection.say(1, 0)
    await connection.say(2, 4, channel="closed:a")
    await connection.say(3, 5, channel="closed:a")
    await turns()
    replies = [connection.reply(number) for number in (2, 3)]
    assert [reply and reply["error"]["code"] for reply in replies] == [108, 108]
