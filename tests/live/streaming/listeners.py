"""Listeners, byte for byte: one request, and events as a browser would read them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.conftest import connection_token
from tests.live.configurations import NAMESPACES, Options
from tests.live.raw_http import Exchange, open_exchange
from tests.server import Server

EVENTS = "/connection/events"

LISTENERS: Options = {"events": True, "namespaces": NAMESPACES}


class Event(NamedTuple):
    """One event, or the fields of one that a browser does not dispatch."""

    name: str = ""
    data: str | None = None
    id: str | None = None
    retry: str | None = None


class Listener:
    """A listener whose stream has begun."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.id = ""
        """The ID of the last event, which a browser sends when it comes back."""

    async def block(self) -> Event:
        """The next lines up to an empty one, comments left out."""
        while True:
            block = (await self.exchange.read_until(b"\n\n")).decode()
            event = read_event(block)
            if event != Event():
                break
        if event.id is not None:
            self.id = event.id
        return event

    async def event(self) -> Event:
        """The next event that a browser dispatches."""
        while (event := await self.block()).data is None:
            pass
        return event

    async def data(self) -> Any:
        """The next payload, decoded."""
        return json.loads((await self.event()).data or "")

    async def begun(self) -> None:
        """Wait for the first ID: the listener is live."""
        while (await self.block()).id is None:
            pass

    async def rest(self) -> list[Event]:
        """What comes up to the end of the response, which must come."""
        blocks = (await self.exchange.rest()).decode().split("\n\n")
        assert blocks.pop() == ""
        events = [event for event in map(read_event, blocks) if event != Event()]
        self.id = next((event.id for event in reversed(events) if event.id is not None), self.id)
        return events


def read_event(block: str) -> Event:
    """The fields of one block of lines."""
    fields: dict[str, str] = {}
    for line in block.removesuffix("\n\n").split("\n"):
        name, _, value = line.partition(":")
        assert name in ("", "id", "event", "data", "retry"), line
        value = value.removeprefix(" ")
        if name == "data" and "data" in fields:
            fields["data"] += f"\n{value}"
        elif name:
            fields[name] = value
    return Event(fields.get("event", ""), fields.get("data"), fields.get("id"), fields.get("retry"))


def address(*channels: str, token: str | None = None, **fields: str) -> str:
    """The path of a listener. `token`: None for one of user 17, "" for none."""
    token = connection_token("17") if token is None else token
    query = [("channel", channel) for channel in channels]
    query += [("token", token)] if token else []
    return f"{EVENTS}?{urlencode([*query, *fields.items()])}"


@asynccontextmanager
async def listening(
    server: Server, path: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Listener]:
    """Listen; the head of the response has been read."""
    exchange = await open_exchange(server, "GET", path, headers=headers)
    try:
        await exchange.begin()
        assert exchange.status == 200, await exchange.rest()
        yield Listener(exchange)
    finally:
        await exchange.close()
