"""Parts of the tests of the second generation: a client that speaks it, and what it is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from realtime.node.node import Node
from tests.server import SECRET
from tests.unit.node.node_parts import Connection
from tests.unit.parts import data

OPTIONS: dict[str, Any] = {
    "token_hmac_secret_key": SECRET,
    "v3_use_offset": True,
    "presence": True,
    "join_leave": True,
    "history_size": 10,
    "history_lifetime": 300,
    "history_recover": True,
    "namespaces": [
        {"name": "plain"},
        {"name": "kept", "history_size": 3, "history_lifetime": 300},
        {
            "name": "cache",
            "history_size": 3,
            "history_lifetime": 300,
            "force_recovery": True,
            "force_recovery_mode": "cache",
        },
        {
            "name": "tags",
            "allow_tags_filter": True,
            "history_size": 10,
            "history_lifetime": 300,
            "force_recovery": True,
        },
        {
            "name": "auto",
            "history_size": 3,
            "history_lifetime": 300,
            "force_recovery": True,
            "force_recovery_mode": "cache",
            "auto_cache_recover": True,
        },
        {
            "name": "deltas",
            "allowed_delta_types": ["fossil"],
            "allow_tags_filter": True,
            "history_size": 3,
            "history_lifetime": 300,
            "force_recovery": True,
        },
        {"name": "plaindeltas", "allowed_delta_types": ["fossil"]},
        {"name": "plaintags", "allow_tags_filter": True},
        {
            "name": "cachetags",
            "allow_tags_filter": True,
            "history_size": 5,
            "history_lifetime": 300,
            "force_recovery": True,
            "force_recovery_mode": "cache",
        },
        {
            "name": "autotags",
            "allow_tags_filter": True,
            "history_size": 5,
            "history_lifetime": 300,
            "force_recovery": True,
            "force_recovery_mode": "cache",
            "auto_cache_recover": True,
        },
        {"name": "ours", "server_side": True},
        {"name": "open", "publish": True, "anonymous": True},
        {
            "name": "hidden",
            "presence": True,
            "presence_disable_for_client": True,
            "history_size": 3,
            "history_lifetime": 300,
            "history_disable_for_client": True,
        },
        {
            "name": "asking",
            "presence": True,
            "join_leave": True,
            "force_push_join_leave": False,
            "history_size": 3,
            "history_lifetime": 300,
            "allow_recovery": True,
            "allow_positioning": True,
        },
    ],
}


class SecondConnection(Connection):
    """A client of the second generation, in JSON."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._next = 1

    async def frame(self, *commands: dict[str, Any]) -> None:
        """Send commands in one frame, as they are."""
        await self.raw("\n".join(json.dumps(command) for command in commands))

    async def raw(self, frame: str) -> None:
        """Send one frame."""
        await self.dispatcher.receive(frame.encode())

    def begin(self, method: str, /, **params: Any) -> asyncio.Task[dict[str, Any]]:
        """Begin a command."""
        return asyncio.create_task(self.call(method, **params))

    async def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Run a command; returns its result, or {"error": code}, or {} if there is no reply."""
        number, self._next = self._next, self._next + 1
        await self.frame({"id": number, method: params})
        await asyncio.sleep(0)  # the outbox is flushed
        reply = self.reply(number)
        if reply is None:
            return {}
        if "error" in reply:
            return {"error": reply["error"]["code"]}
        result: dict[str, Any] = reply[method]
        return result

    @property
    def pushed(self) -> list[dict[str, Any]]:
        """The pushes so far, in order."""
        return [message["push"] for message in self.messages if "push" in message]

    def kinds(self, channel: str = "") -> list[str]:
        """The kinds of the pushes so far; with a channel, of those in it."""
        return [
            next(key for key in push if key != "channel")
            for push in self.pushed
            if not channel or push.get("channel") == channel
        ]

    @property
    def pings(self) -> int:
        """How many pings came."""
        return self.messages.count({})


async def publish(node: Node, channel: str, value: int) -> None:
    """Publish a number into a channel."""
    options = node.config.options_of_namespace(channel.partition(":")[0] if ":" in channel else "")
    assert options is not None
    await node.publish(channel, data(str(value)), options)


def published(connection: SecondConnection) -> list[Any]:
    """The data of the publications pushed so far."""
    return [push["pub"]["data"] for push in connection.pushed if "pub" in push]
