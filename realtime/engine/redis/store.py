"""RedisStore: streams, presence and publishing in Redis, one round trip each, from any process.

A channel's stream, its presence and its layer group belong to one shard; what concerns the
service as a whole belongs to the shard of the control stream.

Beyond the spec: the model of Centrifugo 2.8 (protocol and promises), with keys of our own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from realtime.channel_rules import CONTROL, QUESTIONS
from realtime.config.options import ChannelOptions
from realtime.engine.base import (
    NODES_REMEMBERED,
    History,
    NodeInfo,
    NodeStatus,
    SurveyID,
    new_epoch,
)
from realtime.engine.redis import records
from realtime.engine.redis.carriers import Carrier
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import Sending, Step, Stream
from realtime.engine.redis.scripts import (
    ADD_PRESENCE,
    NODES_SEEN,
    OPEN_SURVEY,
    PRESENCE,
    READ,
    REMOVE_PRESENCE,
    RENEW_EPOCH,
)
from realtime.payload import Payload
from realtime.protocol.messages import (
    UINT64_MAX,
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
)
from realtime.redis.script import Script

PUBLICATION = "realtime.publication"
JOIN = "realtime.join"
LEAVE = "realtime.leave"

ROUND_TRIPS = 3
"""Of so many round trips to a Redis the median is told."""

_NOT_KEPT = ChannelOptions()

ENTRIES_PER_STEP = 200
"""Clients recorded by one script, which Redis runs while everybody else waits."""


class RedisStore:
    """See `engine.base.Store` for what the methods promise.

    All of them raise EngineUnavailable.
    """

    def __init__(
        self,
        carrier: Carrier,
        prefix: str,
        *,
        meta_lifetime: int = 0,
        epoch_per_run: bool = False,
    ) -> None:
        """
        Args:
            carrier: reaches Redis and the groups.
            prefix: begins the name of every key.
            meta_lifetime: seconds the position of an unused channel is kept; 0: for ever.
            epoch_per_run: begin new epochs when Redis was restarted.
        """
        self._carrier = carrier
        self._layer = carrier.layer
        self._shards = len(carrier.layer.hosts)
        self.keys = Keys(prefix)
        self._meta_lifetime = meta_lifetime
        self._epoch_per_run = epoch_per_run

    # publishing

    async def publish(
        self, channel: ChannelName, publication: Publication, options: ChannelOptions
    ) -> StreamPosition | None:
        position = await self._carrier.publish(self._sending(channel, publication, options))
        return None if position is None else StreamPosition(position.offset, position.epoch)

    async def publish_many(
        self, publications: Sequence[tuple[ChannelName, Publication, ChannelOptions]]
    ) -> list[BaseException | None]:
        results = await self._carrier.publish_many([self._sending(*p) for p in publications])
        return [result if isinstance(result, BaseException) else None for result in results]

    async def publish_join(self, channel: ChannelName, info: ClientInfo) -> None:
        await self._publish_info(JOIN, channel, info)

    async def publish_leave(self, channel: ChannelName, info: ClientInfo) -> None:
        await self._publish_info(LEAVE, channel, info)

    def _sending(
        self, channel: ChannelName, publication: Publication, options: ChannelOptions
    ) -> Sending:
        message = {
            "type": PUBLICATION,
            "channel": channel,
            "record": records.of_publication(publication),
        }
        stream = None
        if options.keeps_history:
            stream = Stream(
                self.keys.stream(channel),
                options.history_size,
                options.history_lifetime,
                self._meta_lifetime,
                self._epoch_per_run,
            )
        return Sending(self.keys.group(channel), message, stream)

    async def _publish_info(self, kind: str, channel: ChannelName, info: ClientInfo) -> None:
        message = {"type": kind, "channel": channel, "record": records.of_client(info)}
        await self._carrier.publish(Sending(self.keys.group(channel), message))

    # streams

    async def history(self, channel: ChannelName, since: int = 0) -> History:
        position, entries = await self._read(channel, since)
        publications = []
        for number, fields in entries:
            offset = int(number.partition(b"-")[0])
            message = self._layer.deserialize(fields[1])
            publications.append(records.to_publication(message["record"], offset))
        return History(tuple(publications), position)

    async def position(self, channel: ChannelName) -> StreamPosition:
        return (await self._read(channel, None))[0]

    async def remove_history(self, channel: ChannelName) -> None:
        await self._command(channel, b"DEL", self.keys.stream(channel)[0])

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        _, meta, new = self.keys.stream(channel)
        # what follows a hyphen is the run of the server, which the script does not keep
        await self._run(channel, RENEW_EPOCH, (meta, new), (epoch.partition("-")[0], new_epoch()))

    async def _read(
        self, channel: ChannelName, since: int | None
    ) -> tuple[StreamPosition, list[Any]]:
        arguments = (
            # clients choose it, and entry IDs end there
            "" if since is None else min(max(since, 0), UINT64_MAX),
            self._meta_lifetime,
            new_epoch(),
            int(self._epoch_per_run),
        )
        offset, epoch, entries = await self._run(
            channel, READ, self.keys.stream(channel), arguments
        )
        return StreamPosition(int(offset), epoch.decode()), entries

    # presence

    async def add_presence(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        entries = [(info.client, records.of_client(info)) for info in clients]
        await self._add_entries(channel, self.keys.presence(channel), entries, lifetime)

    async def remove_presence(self, channel: ChannelName, client: ClientID) -> None:
        await self._run(channel, REMOVE_PRESENCE, self.keys.presence(channel), (client,))

    async def presence(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        entries = await self._entries(channel, self.keys.presence(channel))
        return {client: records.to_client(record) for client, record in entries}

    async def _add_entries(
        self,
        channel: ChannelName,
        keys: tuple[str, str],
        entries: Sequence[tuple[str, records.Record]],
        lifetime: float,
    ) -> None:
        for start in range(0, len(entries), ENTRIES_PER_STEP):
            arguments: list[str | bytes | int] = [int(lifetime * 1000)]
            for name, record in entries[start : start + ENTRIES_PER_STEP]:
                arguments += (name, self._pack(record))
            await self._run(channel, ADD_PRESENCE, keys, arguments)

    async def _entries(
        self, channel: ChannelName, keys: tuple[str, str]
    ) -> list[tuple[str, records.Record]]:
        reply = await self._run(channel, PRESENCE, keys, ())
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return [(name.decode(), self._unpack(value)) for name, value in pairs]

    # the service

    async def channels(self) -> list[ChannelName]:
        nodes = await self._entries(CONTROL, self.keys.nodes)
        if not nodes:
            return []
        keys = [self.keys.channels(uid) for uid, _ in nodes]
        names = await self._command(CONTROL, b"SUNION", *keys)
        return [name.decode() for name in names]

    async def nodes(self) -> list[NodeInfo]:
        return [
            records.to_node(record) for _, record in await self._entries(CONTROL, self.keys.nodes)
        ]

    async def statuses(self) -> list[NodeStatus]:
        keys = (*self.keys.seen, self.keys.nodes[1])
        reply = await self._run(CONTROL, NODES_SEEN, keys, ())
        return [
            records.to_status(self._unpack(value), NODES_REMEMBERED - left / 1000, bool(alive))
            for value, left, alive in zip(reply[1::4], reply[2::4], reply[3::4], strict=True)
        ]

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        key = self.keys.answers(survey)
        await self._run(CONTROL, OPEN_SURVEY, (key,), (int(lifetime * 1000),))
        await self.publish(QUESTIONS, Publication(question), _NOT_KEPT)

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        # the first entry is none
        entries = await self._command(CONTROL, b"LRANGE", self.keys.answers(survey), start + 1, -1)
        return [self._unpack(entry)[0].encode() for entry in entries]

    async def round_trip(self) -> float | None:
        return max([await self._shard_round_trip(shard) for shard in range(self._shards)])

    async def _shard_round_trip(self, shard: int) -> float:
        times = []
        for _ in range(ROUND_TRIPS):
            begun = time.perf_counter()
            await self._carrier.take(Step(shard, None, (), (b"PING",)))
            times.append(time.perf_counter() - begun)
        return statistics.median(times)

    # round trips

    async def _run(
        self,
        channel: ChannelName,
        script: Script,
        keys: Sequence[str],
        arguments: Sequence[str | bytes | int],
    ) -> Any:
        shard = self._layer.shard(self.keys.group(channel))
        return await self._carrier.take(Step(shard, script, keys, arguments))

    async def _command(self, channel: ChannelName, *command: str | bytes | int) -> Any:
        shard = self._layer.shard(self.keys.group(channel))
        return await self._carrier.take(Step(shard, None, (), command))

    def _pack(self, record: records.Record) -> bytes:
        packed: bytes = self._layer.serialize({"record": record})
        return packed

    def _unpack(self, packed: bytes) -> records.Record:
        record: records.Record = self._layer.deserialize(packed)["record"]
        return record
