"""Maps at a node: expiry, and the clients of a channel as maps.

Expiry. An entry whose lifetime is over stays until a node publishes its removal. Every node looks
for such entries once a second. The mode `if_expired` makes one removal of an entry that several
nodes find, and a node that died leaves its entries to the others.

Presence maps. `presence_maps` of a channel names namespaces of maps. The clients of "room:1" are
then also in the map "clients:room:1"; the `map_key` of its namespace decides by which key:

    map_key   a client comes     each refresh        it leaves           its node dies
    client    put                lifetime renewed    removal             the lifetime ends
    user      put, or renewed    lifetime renewed    the lifetime ends   the lifetime ends
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from realtime.channel_rules import options_of, presence_maps
from realtime.cluster.context import Context
from realtime.cluster.member import NOTHING
from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import Outgoing, Presence, Published, Streams
from realtime.engine.maps import KeyMode, Maps, check_key
from realtime.errors import BadRequest, EngineUnavailable, NamespaceNotFound
from realtime.metrics import Outage
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, ClientInfo, Publication

logger = logging.getLogger("realtime.node")

SWEEP_INTERVAL = 1.0
"""Seconds between two looks for entries whose lifetime is over."""
BATCH = 100
"""Changes that are published at once."""
NO_MAP = ChannelOptions(map="ephemeral")
"""The options of a map whose namespace is a map no longer: its entries end without a stream."""


class Changes:
    """Makes and publishes changes of maps, for the node itself."""

    def __init__(
        self,
        streams: Streams,
        publication: Callable[[Payload, ChannelOptions, ClientInfo | None], Publication],
    ) -> None:
        self._streams = streams
        self._publication = publication

    def change(
        self,
        channel: ChannelName,
        key: str,
        options: ChannelOptions,
        info: ClientInfo | None = None,
        *,
        mode: KeyMode = "",
        ttl: int | None = None,
    ) -> Outgoing:
        """Return the put of a client's info; without info, the removal of the key."""
        publication = self._publication(NOTHING, options, info)
        publication = replace(publication, key=key, removed=info is None)
        return Outgoing(channel, publication, options, key_mode=mode, ttl=ttl)

    async def publish(self, changes: Sequence[Outgoing]) -> list[Published]:
        """Publish changes, in steps.

        Raises:
            EngineUnavailable: one was not published, nor were those of later steps.
        """
        made: list[Published] = []
        for first in range(0, len(changes), BATCH):
            for result in await self._streams.publish_many(changes[first : first + BATCH]):
                if isinstance(result, EngineUnavailable):
                    raise result
                made.append(result)
        return made


class Expiry:
    """Removes the entries whose lifetime is over. Belongs to the event loop of its node."""

    def __init__(self, context: Context, maps: Maps, changes: Changes) -> None:
        self._context, self._maps, self._changes = context, maps, changes
        self._timer = context.timers.timer(lambda: context.spawn(self._run()))
        self._is_stopping = False

    def start(self) -> None:
        """Look from now on."""
        self._timer.set(self._context.timers.now() + SWEEP_INTERVAL)

    def stop(self) -> None:
        """Look no more."""
        self._is_stopping = True
        self._timer.cancel()

    async def _run(self) -> None:
        try:
            with self._context.logged(
                logger.warning, "Could not remove expired entries of maps, will retry: %s"
            ):
                while await self.sweep() and not self._is_stopping:
                    pass
        finally:
            self._timer.set(self._context.timers.now() + SWEEP_INTERVAL)

    async def sweep(self) -> bool:
        """Remove entries whose lifetime is over. Return whether there may be more.

        Raises:
            EngineUnavailable: the engine, or a part of it, did not answer.
        """
        found = await self._maps.due(BATCH)
        due = [each for each in found if not isinstance(each, EngineUnavailable)]
        made = await self._changes.publish(
            [self._changes.change(*each, self._options(each[0]), mode="if_expired") for each in due]
        )
        for away in found:
            if isinstance(away, EngineUnavailable):
                raise away
        # if none was removed, other nodes are at the same entries
        return len(due) == BATCH and any(published.kept for published in made)

    def _options(self, channel: ChannelName) -> ChannelOptions:
        try:
            options = options_of(channel, self._context.config)
        except NamespaceNotFound:
            return NO_MAP
        return options if options.map else NO_MAP


class MappedPresence:
    """The presence of an engine, whose clients are also in presence maps."""

    def __init__(self, presence: Presence, changes: Changes, config: Config) -> None:
        self._presence, self._changes, self._config = presence, changes, config
        self.get = presence.get
        self._full = Outage()

    async def add(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        """See `engine.base.Presence`."""
        clients = list(clients)
        await self._presence.add(channel, clients, lifetime)
        ttl = math.ceil(lifetime)
        made = await self._changes.publish(
            [
                self._changes.change(name, key, options, info, mode="renew", ttl=ttl)
                for name, options in presence_maps(channel, self._config)
                for key, info in _entries(options, clients)
            ]
        )
        if any(each.reason == "full" for each in made) and self._full.begins():
            logger.warning("The presence maps of %r lack clients: see map_max_keys", channel)

    async def remove(self, channel: ChannelName, client: ClientID) -> None:
        """See `engine.base.Presence`."""
        await self._presence.remove(channel, client)
        await self._changes.publish(
            [
                self._changes.change(name, client, options)
                for name, options in presence_maps(channel, self._config)
                if options.map_key == "client"
            ]
        )


def _entries(
    options: ChannelOptions, clients: Iterable[ClientInfo]
) -> Iterator[tuple[str, ClientInfo]]:
    """Yield the entries of clients in a presence map. Users whose IDs are no keys have none."""
    if options.map_key == "client":
        yield from ((info.client, info) for info in clients)
        return
    for user in dict.fromkeys(info.user for info in clients):
        with suppress(BadRequest):
            check_key(user)
            yield user, ClientInfo(user, "")
