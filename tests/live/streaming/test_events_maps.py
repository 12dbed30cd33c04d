"""Maps by their address: the entries first, then each change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.api_methods import KEY
from tests.live.streaming.client import JSON_BODY, ask
from tests.live.streaming.listeners import LISTENERS, Listener, address, listening
from tests.server import Server

MAPS: list[dict[str, Any]] = [
    {"name": "keyed", "map": "persistent", "history_size": 5, "history_lifetime": 60},
    {"name": "short", "map": "ephemeral", "map_key_ttl": 600},
]
OPTIONS: dict[str, Any] = {**LISTENERS, "namespaces": [*LISTENERS["namespaces"], *MAPS]}


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**OPTIONS)


async def put(server: Server, channel: str, key: str, data: Any) -> None:
    body = json.dumps({"channel": channel, "key": key, "data": data}).encode()
    answer = await ask(server, "POST", "/api/map_publish", body, {**JSON_BODY, **KEY})
    assert answer.status == 200


async def changes(listener: Listener, count: int) -> list[Any]:
    return [await listener.data() for _ in range(count)]


def entry(key: str, data: Any) -> dict[str, Any]:
    return {"key": key, "data": data}


async def reset(listener: Listener, *channels: str) -> None:
    event = await listener.event()
    assert (event.name, json.loads(event.data or "")) == ("reset", {"channels": list(channels)})


async def test_entries_come_first_and_the_id_after_them(server: Server, unique: str) -> None:
    channel = f"keyed:{unique}"
    await put(server, channel, "b", 1)
    await put(server, channel, "a", {"n": 2})
    async with listening(server, address(channel)) as listener:
        await reset(listener, channel)
        assert await changes(listener, 2) == [entry("a", {"n": 2}), entry("b", 1)]
        assert listener.id == "", "who is cut off here has to read the map again"
        assert (await listener.block()).data is None
        begun = listener.id
        assert begun
        await put(server, channel, "b", 3)
        assert await changes(listener, 1) == [entry("b", 3)]
        last = listener.id

    await put(server, channel, "c", 4)
    for seen, missed in ((begun, [entry("b", 3), entry("c", 4)]), (last, [entry("c", 4)])):
        async with listening(server, address(channel), {"Last-Event-ID": seen}) as listener:
            assert await changes(listener, len(missed)) == missed

    for number in range(5):
        await put(server, channel, "d", number)
    async with listening(server, address(channel), {"Last-Event-ID": begun}) as listener:
        await reset(listener, channel)
        expected = [entry("a", {"n": 2}), entry("b", 3), entry("c", 4), entry("d", 4)]
        assert await changes(listener, 4) == expected


async def test_map_without_a_stream_is_sent_at_each_return(server: Server, unique: str) -> None:
    channel = f"short:{unique}"
    await put(server, channel, "a", 1)
    for _ in range(2):
        async with listening(server, address(channel)) as listener:
            await reset(listener, channel)
            assert await changes(listener, 1) == [entry("a", 1)]
            await put(server, channel, "a", 1)
            assert await changes(listener, 1) == [entry("a", 1)]
            assert listener.id == ""


async def test_map_beside_other_channels(server: Server, unique: str) -> None:
    kept, other = f"keyed:{unique}", f"recover:{unique}"
    for number in range(150):
        await put(server, kept, f"{number:03}", number)
    async with listening(server, address(kept, other)) as listener:
        await reset(listener, kept)
        found = [await listener.event() for _ in range(150)]
        assert {event.name for event in found} == {kept}
        assert [json.loads(event.data or "") for event in found] == [
            entry(f"{number:03}", number) for number in range(150)
        ]
        assert kept not in listener.id
        await asyncio.to_thread(server.publish, other, "text")
        assert (await listener.event()).name == other
        seen = listener.id
    await put(server, kept, "000", "new")
    async with listening(server, address(kept, other), {"Last-Event-ID": seen}) as listener:
        event = await listener.event()
        assert (event.name, json.loads(event.data or "")) == (kept, entry("000", "new"))


async def test_map_above_the_bound_of_recovery_is_refused_for_good(
    serve: Callable[..., Server], unique: str
) -> None:
    server = serve(**OPTIONS, client_recovery_max_size=1000)
    channel = f"keyed:{unique}"
    for number in range(2):
        await put(server, channel, str(number), "x" * 600)
    async with listening(server, address(channel)) as listener:
        last = (await listener.rest())[-1]
    assert (last.name, json.loads(last.data or "")["code"]) == ("disconnect", 3503)
