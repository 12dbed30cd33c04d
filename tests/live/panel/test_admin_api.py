"""/admin/auth and /admin/api, as tools of the reference server use them (docs/protocol.md, 9)."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.live.configurations import Connect
from tests.live.standalone_site import visitor
from tests.panel.standalone_parts import PASSWORD
from tests.server import Server


def ask(server: Server, content: bytes, content_type: str = "application/json") -> httpx.Response:
    """Run commands with a token that the password gives."""
    with visitor(server) as tool:
        token = tool.post("/admin/auth", data={"password": PASSWORD}).json()["token"]
        headers = {"Authorization": f"token {token}", "Content-Type": content_type}
        return tool.post("/admin/api", content=content, headers=headers)


async def test_actions_of_the_reference_panel_do_their_work(
    server: Server, connect: Connect, unique: str
) -> None:
    channel = f"demo:{unique}"
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": channel})
    data = {"n": 1}
    place = {"channel": channel}

    commands: list[dict[str, Any]] = [
        {"method": "publish", "params": {**place, "data": data}},
        {"method": "broadcast", "params": {"channels": [channel, f"{channel}-b"], "data": data}},
        {"method": "presence_stats", "params": place},
        {"method": "presence", "params": place},
        {"method": "history", "params": place},
        {"method": "channels", "params": {}},
        {"method": "history_remove", "params": place},
        {"method": "history", "params": place},
        {"method": "unsubscribe", "params": {"user": unique, **place}},
        {"method": "disconnect", "params": {"user": unique}},
    ]
    response = ask(server, "\n".join(map(json.dumps, commands)).encode())

    assert response.status_code == 200
    replies = [json.loads(line) for line in response.text.splitlines()]

    assert not [reply for reply in replies if "error" in reply]
    results = [reply["result"] for reply in replies]
    assert results[0] == results[1] == results[6] == results[8] == results[9] == {}
    assert results[2] == {"num_clients": 1, "num_users": 1}
    assert [info["user"] for info in results[3]["presence"].values()] == [unique]
    assert [kept["data"] for kept in results[4]["publications"]] == [data, data]
    assert channel in results[5]["channels"]
    assert results[7] == {"publications": []}
    assert await client.closed() == (3012, '{"reason":"force disconnect","reconnect":false}')


@pytest.mark.parametrize(
    ("body", "status", "reply"),
    [
        (b"", 400, "Bad Request\n"),
        (b"{", 400, "Bad Request\n"),
        (
            b'{"id":3,"method":"presence","params":{}}',
            200,
            {"id": 3, "error": {"code": 107, "message": "bad request"}},
        ),
    ],
)
def test_bodies_and_statuses_are_those_of_the_server_api(
    server: Server, body: bytes, status: int, reply: object
) -> None:
    response = ask(server, body, "text/special")
    assert response.status_code == status
    assert (response.text if status == 400 else response.json()) == reply
    assert status == 400 or response.headers["Content-Type"] == "text/special"
