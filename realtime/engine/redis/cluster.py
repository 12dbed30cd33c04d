"""The cluster in Redis: nodes, surveys and claims.

All of it is on the shard of the control stream, but for claims, which are spread by name.
"""

from __future__ import annotations

from realtime.channel_rules import CONTROL, INTERNAL_OPTIONS, QUESTIONS
from realtime.engine import records
from realtime.engine.base import Outgoing, Streams
from realtime.engine.entries import Entries
from realtime.engine.nodes import NODES_REMEMBERED, NodeInfo, NodeStatus, SurveyID
from realtime.engine.redis.lists import RedisNodeLists
from realtime.engine.redis.scripts import (
    CLAIM,
    NODES_SEEN,
    OPEN_SURVEY,
    REMOVE_PRESENCE,
)
from realtime.engine.redis.shards import OTHER_KEYS, Shards, decoding
from realtime.payload import Payload
from realtime.protocol.messages import Publication


class RedisCluster:
    """See `engine.nodes.Cluster` for the contract."""

    def __init__(
        self, shards: Shards, streams: Streams, lists: RedisNodeLists | None = None
    ) -> None:
        """
        Args:
            streams: publishes the questions of surveys.
            lists: what there is at this node, if it is one.
        """
        self._shards = shards
        self._keys = shards.keys
        self._streams = streams
        self._lists = lists
        self._nodes = Entries("A node", OTHER_KEYS)

    # nodes

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        entries = [(node.uid, records.of_node(node))]
        await self._shards.add_entries(CONTROL, self._keys.nodes, entries, lifetime)
        await self._shards.add_entries(CONTROL, self._keys.seen, entries, NODES_REMEMBERED)
        if self._lists is not None:
            await self._lists.renew(node.uid, lifetime)

    async def withdraw(self, node: NodeInfo, held_seconds: float | None = None) -> None:
        if self._lists is not None:
            await self._lists.withdraw(node.uid, held_seconds)
        for keys in (self._keys.nodes, self._keys.seen):
            await self._shards.run(CONTROL, REMOVE_PRESENCE, keys, (node.uid,))
        await self._shards.command(CONTROL, b"DEL", self._keys.connections(node.uid))

    async def statuses(self) -> list[NodeStatus]:
        keys = (*self._keys.seen, self._keys.nodes[1])
        reply = await self._shards.run(CONTROL, NODES_SEEN, keys)
        return self._nodes.decoded(
            zip(reply[1::4], reply[2::4], reply[3::4], strict=True),
            lambda row: records.to_status(
                self._shards.unpack(row[0]), NODES_REMEMBERED - row[1] / 1000, bool(row[2])
            ),
        )

    # surveys

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        key = self._keys.answers(survey)
        await self._shards.run(CONTROL, OPEN_SURVEY, (key,), (int(lifetime * 1000),))
        await self._streams.publish(Outgoing(QUESTIONS, Publication(question), INTERNAL_OPTIONS))

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        entry = self._shards.pack(records.of_answer(answer))
        await self._shards.command(CONTROL, b"RPUSHX", self._keys.answers(survey), entry)

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        # the first entry only keeps the list alive: see open_survey.lua
        key = self._keys.answers(survey)
        entries = await self._shards.command(CONTROL, b"LRANGE", key, start + 1, -1)
        return [self._answer(entry) for entry in entries]

    def _answer(self, entry: bytes) -> bytes:
        """Return an answer; empty, which is no answer of a node, if it cannot be decoded."""
        try:
            return records.to_answer(self._shards.unpack(entry))
        except Exception:  # serializers and decoders raise all kinds of them
            return b""

    # claims

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        key = self._keys.owner(name)
        reply = await self._shards.run(name, CLAIM, (key,), (owner, int(lifetime * 1000)))
        with decoding("an owner"):
            return reply.decode()

    async def owner(self, name: str) -> str | None:
        reply = await self._shards.command(name, b"GET", self._keys.owner(name))
        with decoding("an owner"):
            return None if reply is None else reply.decode()

    async def round_trip(self) -> float:
        return await self._shards.round_trip()
