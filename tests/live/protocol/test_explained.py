"""What the page "Why?" says, beside what a client of a server gets: the same, for every check.

docs/authentication.md.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any, Literal

import pytest
from websockets.asyncio.client import ClientConnection, connect

from realtime.config.options import Config
from realtime.config.reader import load
from realtime.hooks.deciding import Deciding
from realtime.hooks.registry import Registry
from realtime.operators.explaining import ACTIONS, Action, Question, explain
from tests.conftest import connection_token
from tests.live.configurations import MAIN, Serve

NAMESPACES: list[dict[str, Any]] = [
    *MAIN["namespaces"],
    {"name": "token_only", "allow_subscribe_for_client": False},
    {
        "name": "by_name",
        "allow_subscribe_for_client": False,
        "allow_user_limited_channels": True,
        "allow_publish_for_subscriber": True,
    },
    {
        "name": "readers",
        "presence": True,
        "history_size": 3,
        "history_lifetime": 60,
        "allow_subscribe_for_anonymous": True,
        "allow_presence_for_client": True,
        "allow_history_for_client": True,
        "allow_publish_for_client": True,
        "allow_publish_for_anonymous": True,
    },
    {"name": "numbers", "channel_regex": "^[0-9]+$", "presence": True, "publish": True},
]
OPTIONS: dict[str, Any] = {**MAIN, "namespaces": NAMESPACES}
LATER: tuple[Action, ...] = ("publish", "presence", "history")
NAMES = ("{}:{}", "{}:{}#17", "{}:{}#17,18", "${}:{}", "{}:é{}")
LONG = "ns:" + "a" * 300
METHODS = {"subscribe": 1, "unsubscribe": 2, "publish": 3, "presence": 4, "history": 6}
"""Method → its number in the first generation."""


class Asking:
    """A client that tries what it may do."""

    def __init__(self, socket: ClientConnection, generation: int) -> None:
        self._socket = socket
        self._generation = generation
        self._ids = count(2)

    async def code(self, method: str, channel: str) -> int | None:
        """The code of the error that a command gets; None if it succeeds."""
        params = {"channel": channel} | ({"data": {"n": 1}} if method == "publish" else {})
        number = next(self._ids)
        command: dict[str, Any] = {"id": number, method: params}
        if self._generation == 1:
            command = {"id": number, "method": METHODS[method], "params": params}
        await self._socket.send(json.dumps(command))
        while True:
            frame = await self._socket.recv()
            for line in str(frame).splitlines():
                reply = json.loads(line)
                if reply.get("id") == number:
                    error = reply.get("error")
                    return None if error is None else int(error["code"])


def told(question: Question, config: Config) -> int | None:
    """The code that the explanation names; None if nothing refuses."""

    def found(action: Action, channel: str, options: Any) -> Any:
        kind: Literal["publish", "subscribe"] = "publish" if action == "publish" else "subscribe"
        return Deciding(Registry(), config).decider(kind, channel, options)

    refusal = explain(question, config, found).refusal
    return None if refusal is None or refusal.error is None else refusal.error.code


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("user", ["17", "19", ""])
async def test_explanations_are_what_a_client_gets(
    serve: Serve, unique: str, user: str, generation: Literal[1, 2]
) -> None:
    server, config = serve(**OPTIONS), load(OPTIONS)
    first: dict[str, Any] = {"id": 1, "connect": {"token": connection_token(user)}}
    if generation == 1:
        first = {"id": 1, "params": {"token": connection_token(user)}}
    names = [name.format(each["name"], unique) for each in NAMESPACES for name in NAMES]
    wrong: list[object] = []
    tried = 0
    async with connect(server.socket, proxy=None) as socket:
        await socket.send(json.dumps(first))
        await socket.recv()
        client = Asking(socket, generation)

        async def compare(channel: str, action: Action, subscribed: bool) -> int | None:
            nonlocal tried
            tried += 1
            got = await client.code(action, channel)
            question = Question(
                user=user,
                channel=channel,
                action=action,
                generation=generation,
                subscribed=subscribed,
            )
            if got != (said := told(question, config)):
                wrong.append((channel, action, subscribed, got, said))
            return got

        for channel in [*names, "nope:a", LONG, "numbers:7"]:
            for action in LATER:
                await compare(channel, action, subscribed=False)
            if await compare(channel, "subscribe", subscribed=False) is None:
                for action in LATER:
                    await compare(channel, action, subscribed=True)
                await client.code("unsubscribe", channel)

    assert wrong == []
    assert tried > len(names) * len(ACTIONS)
