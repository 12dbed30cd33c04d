"""An engine with spans around publications and deliveries, in front of any other.

It is there only where the site has set traces up, so it costs nothing elsewhere. What the service
itself publishes, in internal channels, has no spans.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from realtime import tracing
from realtime.channel_rules import INTERNAL, namespace_of
from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import (
    Broker,
    Engine,
    Outgoing,
    Presence,
    Published,
    Receiver,
    Store,
    Streams,
)
from realtime.engine.lists import Lists, NodeLists
from realtime.engine.memory import MemoryEngine
from realtime.engine.nodes import Cluster
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.timers import Timers
from realtime.tracing import Spans


class TracedStore:
    """A store whose publications have spans. See `engine.base.Store`."""

    def __init__(self, store: Store, spans: Spans, config: Config) -> None:
        self._store = store
        self.broker: Streams = cast(Streams, _TracedStreams(store.broker, spans, config))

    @property
    def presence(self) -> Presence:
        return self._store.presence

    @property
    def cluster(self) -> Cluster | None:
        return self._store.cluster

    @property
    def lists(self) -> Lists:
        return self._store.lists


class TracedEngine:
    """An engine whose publications and deliveries have spans. See `engine.base.Engine`."""

    def __init__(self, engine: Engine, spans: Spans, config: Config) -> None:
        self._engine = engine
        self._spans = spans
        self._config = config
        self.broker: Broker = cast(Broker, _TracedStreams(engine.broker, spans, config))

    @property
    def presence(self) -> Presence:
        return self._engine.presence

    @property
    def cluster(self) -> Cluster | None:
        return self._engine.cluster

    @property
    def lists(self) -> NodeLists:
        return self._engine.lists

    async def start(self, receiver: Receiver) -> None:
        traced = _TracedReceiver(receiver, self._spans, self._config)
        await self._engine.start(cast(Receiver, traced))

    async def stop(self) -> None:
        await self._engine.stop()


def traced_engine(engine: Engine | None, spans: Spans | None, config: Config) -> Engine | None:
    """Return an engine with spans; the engine as it is where there are none.

    Args:
        engine: None for the memory engine, which belongs to the running loop.
    """
    if spans is None:
        return engine
    if engine is None:
        timers = Timers(asyncio.get_running_loop())
        engine = MemoryEngine(timers, meta_lifetime=config.memory_history_meta_ttl)
    return TracedEngine(engine, spans, config)


def traced_store(store: Store, config: Config) -> Store:
    """Return a store with spans, if there are any in this process; otherwise as it is."""
    spans = tracing.spans()
    return store if spans is None else TracedStore(store, spans, config)


class _Front:
    """Stands in front of another object, which has all methods that are not here."""

    def __init__(self, inner: Any, spans: Spans, config: Config) -> None:
        self._inner = inner
        self._spans = spans
        self._config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _TracedStreams(_Front):
    _inner: Streams

    async def publish(
        self,
        channel: ChannelName,
        publication: Publication,
        options: ChannelOptions,
        once: Once | None = None,
        version: Version | None = None,
    ) -> StreamPosition | None:
        if channel.startswith(INTERNAL):
            return await self._inner.publish(channel, publication, options, once, version)
        with self._spans.publish(namespace_of(channel, self._config)) as traceparent:
            publication = msgspec.structs.replace(publication, traceparent=traceparent)
            return await self._inner.publish(channel, publication, options, once, version)

    async def publish_many(self, publications: Sequence[Outgoing]) -> list[Published]:
        namespaces = {namespace_of(each.channel, self._config) for each in publications}
        namespace = namespaces.pop() if len(namespaces) == 1 else ""
        with self._spans.publish(namespace, len(publications)) as traceparent:
            return await self._inner.publish_many(
                [_traced(outgoing, traceparent) for outgoing in publications]
            )


def _traced(outgoing: Outgoing, traceparent: str) -> Outgoing:
    publication = msgspec.structs.replace(outgoing.publication, traceparent=traceparent)
    return outgoing._replace(publication=publication)


class _TracedReceiver(_Front):
    _inner: Receiver

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        if not publication.traceparent:
            self._inner.on_publication(channel, publication, position)
            return
        namespace = namespace_of(channel, self._config)
        with self._spans.deliver(namespace, publication.traceparent):
            self._inner.on_publication(channel, publication, position)
