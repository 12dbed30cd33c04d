"""Maps as Python objects; what holds for all functions is said in `queries`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Unpack

from realtime import payload
from realtime.channel_rules import name
from realtime.cluster.member import Member
from realtime.engine.base import Published
from realtime.engine.maps import Page
from realtime.hooks.site_values import to_payload
from realtime.payload import site_text
from realtime.protocol.messages import Publication
from realtime.server_api import operations
from realtime.server_api.arguments import (
    AsyncPutOptions,
    AsyncRemoveOptions,
    Position,
    PutOptions,
    RemoveOptions,
    change,
)
from realtime.server_api.publishing import asend, delivery_of, position_of, send
from realtime.server_api.queries import ClientInfo, client_info_of
from realtime.server_api.transactions import UNKNOWN
from realtime.serving import serving


class MapEntry(NamedTuple):
    """An entry of a map: a key and the data of its last put."""

    key: str
    data: Any
    position: Position | None
    """Of the last put, for `expect`; None in an ephemeral map."""
    time: int
    """When that was, by the clock of the engine: Unix time in milliseconds."""
    tags: dict[str, str]
    info: ClientInfo | None
    """The client that put it, if one did."""


class MapResult(NamedTuple):
    """The outcome of a put or of a removal."""

    kept: bool
    """Whether it was made. False: it changed nothing, and clients got nothing."""
    position: Position | None
    """Its position, if it was made; of a repeated idempotency key, that of the first one; otherwise
    the top of the channel. None in an ephemeral map."""
    reason: str
    """Why it was not made: "idempotency", "position_mismatch", "version", "key_exists",
    "key_not_found" or "full"; "" if it was."""
    current: MapEntry | None
    """If it was not made, the entry of the key at that moment."""


class Map:
    """A map: a channel that keeps the newest data of each key, and sends the changes."""

    __slots__ = ("channel",)

    def __init__(self, channel: str) -> None:
        self.channel = name(channel)
        """The name of the channel."""

    def __repr__(self) -> str:
        return f"<Map {self.channel}>"

    def put(self, key: str, data: object, **options: Unpack[PutOptions]) -> MapResult | None:
        """Set the data of a key, and send the change to the subscribers.

        Inside a transaction it goes out after the commit, as `publish` does.

        Args:
            key: 1 to 255 bytes of text.
            data: as for `publish`.
            options: `if_new`, `if_exists`, `expect`, `ttl`, `once`, `once_lifetime`, `version`,
                `version_epoch`, `tags`, `on_commit`, `fail_silently`, `durable`, `at` and `using`,
                which `PutOptions` explains.

        Returns:
            The outcome; None before the commit, for a durable put, and for one that was
            dropped.

        Raises:
            NotAvailable: code 108, the channel is no map, or `expect` in an ephemeral map.
            BadRequest: code 107, the key is empty, too long, or holds a null character.
            TypeError, ValueError, ImproperlyConfigured: as `publish`.
        """
        delivery = delivery_of(options, PutOptions)
        new = change(self.channel, key, to_payload(data), options)
        return _change(send(new, delivery, "Map.aput")[0])

    async def aput(
        self, key: str, data: object, **options: Unpack[AsyncPutOptions]
    ) -> MapResult | None:
        """Set the data of a key. Async version of `put`, always at once."""
        delivery = delivery_of(options, AsyncPutOptions)
        new = change(self.channel, key, to_payload(data), options)
        return _change((await asend(new, delivery))[0])

    def remove(self, key: str, **options: Unpack[RemoveOptions]) -> MapResult | None:
        """Remove a key, and send the change to the subscribers.

        Args:
            key: one that may be missing: then the reason is "key_not_found".
            options: `expect`, `once`, `once_lifetime`, `tags`, `on_commit`, `fail_silently`,
                `durable`, `at` and `using`, which `RemoveOptions` explains.

        Returns:
            What `put` returns.

        Raises:
            Exception: as `put`.
        """
        delivery = delivery_of(options, RemoveOptions)
        return _change(send(change(self.channel, key, None, options), delivery, "Map.aremove")[0])

    async def aremove(self, key: str, **options: Unpack[AsyncRemoveOptions]) -> MapResult | None:
        """Remove a key. Async version of `remove`, always at once."""
        delivery = delivery_of(options, AsyncRemoveOptions)
        return _change((await asend(change(self.channel, key, None, options), delivery))[0])

    def get(self, key: str) -> MapEntry | None:
        """Return the entry of a key, None without one.

        Raises:
            NotAvailable: code 108, the channel is no map.
            BadRequest: code 107, as `put`.
        """
        return _only(serving.call(self._read_one(key), async_name="Map.aget"))

    async def aget(self, key: str) -> MapEntry | None:
        """Return the entry of a key. Async version of `get`."""
        return _only(await serving.acall(self._read_one(key)))

    def items(self) -> Iterator[MapEntry]:
        """Iterate over the entries, in the order of their keys.

        It reads pages. An entry that changes meanwhile is yielded as it was, or as it is.

        Raises:
            NotAvailable: code 108, the channel is no map.
        """
        page = serving.call(self._read(), async_name="Map.aitems")
        yield from _entries(page)
        while page.cursor:
            page = serving.call(self._read(page.cursor))
            yield from _entries(page)

    async def aitems(self) -> AsyncIterator[MapEntry]:
        """Iterate over the entries. Async version of `items`."""
        page = await serving.acall(self._read())
        while True:
            for entry in _entries(page):
                yield entry
            if not page.cursor:
                return
            page = await serving.acall(self._read(page.cursor))

    def size(self) -> int:
        """Return the number of keys.

        Raises:
            NotAvailable: code 108, the channel is no map.
        """
        return serving.call(self._read(limit=0), async_name="Map.asize").size

    async def asize(self) -> int:
        """Return the number of keys. Async version of `size`."""
        return (await serving.acall(self._read(limit=0))).size

    def _read(
        self, cursor: str = "", limit: int = operations.MAX_PAGE
    ) -> Callable[[Member], Awaitable[Page]]:
        return partial(operations.map_page, channel=self.channel, cursor=cursor, limit=limit)

    def _read_one(self, key: str) -> Callable[[Member], Awaitable[Page]]:
        return partial(operations.map_get, channel=self.channel, key=site_text("a key", key))


def map(channel: str) -> Map:  # noqa: A001, as `realtime.map`
    """Return the map in a channel, whose options have `map`.

    Args:
        channel: the name of the channel.

    Raises:
        TypeError: it is not a string.
    """
    return Map(channel)


def _change(outcome: Published) -> MapResult | None:
    if outcome is UNKNOWN:
        return None
    position, current = position_of(outcome), None
    if outcome.current is not None:
        current = _entry(outcome.current, "" if position is None else position.epoch)
    return MapResult(outcome.kept, position, outcome.reason, current)


def _only(page: Page) -> MapEntry | None:
    return next(_entries(page), None)


def _entries(page: Page) -> Iterator[MapEntry]:
    return (_entry(entry, page.position.epoch) for entry in page.entries)


def _entry(entry: Publication, epoch: str) -> MapEntry:
    return MapEntry(
        entry.key,
        payload.value(entry.data.json),
        Position(entry.offset, epoch) if entry.offset else None,
        entry.time,
        dict(entry.tags or {}),
        None if entry.info is None else client_info_of(entry.info),
    )
