"""The cluster in PostgreSQL: nodes, surveys and claims. One node removes what has expired."""

from __future__ import annotations

import time

from realtime.channel_rules import INTERNAL_OPTIONS, QUESTIONS
from realtime.engine import records
from realtime.engine.base import Outgoing, Streams
from realtime.engine.entries import Entries
from realtime.engine.nodes import NODES_REMEMBERED, NodeInfo, NodeStatus, SurveyID
from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.lists import PostgreSQLNodeLists
from realtime.engine.postgresql.packing import FOREIGN, pack, unpack
from realtime.engine.postgresql.streams import digest
from realtime.payload import Payload
from realtime.protocol.messages import Publication

CLEANER = "§expired"
"""Claimed by the node that removes rows that have expired."""
CLEANER_LIFETIME = 30.0
EXPIRED_AT_ONCE = 500
"""Rows of a table that one statement removes."""
EXPIRED_STATEMENTS = 20
"""Statements that remove rows, one after the other, as long as there are more."""

_ANNOUNCE = "SELECT {schema}.announce(%s, %s, %s, %s)"
_WITHDRAW = """
WITH gone AS (DELETE FROM {schema}.node WHERE uid = %s RETURNING uid)
DELETE FROM {schema}.place WHERE node IN (SELECT uid FROM gone)
"""
_STATUSES = """
SELECT info, expires - {schema}.now_ms(), alive_until > {schema}.now_ms()
FROM {schema}.node WHERE expires > {schema}.now_ms()
"""
_ASK = "INSERT INTO {schema}.survey (id, expires) VALUES (%s, {schema}.now_ms() + %s)"
# the row of the survey is locked, so that answers are numbered in the order in which they can be
# read: a reader that has some of them goes on from there
_ANSWER = """
WITH open AS (
    SELECT id FROM {schema}.survey WHERE id = %s AND expires > {schema}.now_ms() FOR UPDATE
)
INSERT INTO {schema}.answer (survey, answer) SELECT id, %s FROM open
"""
_ANSWERS = """
SELECT a.answer FROM {schema}.answer a JOIN {schema}.survey s ON s.id = a.survey
WHERE a.survey = %s AND s.expires > {schema}.now_ms() ORDER BY a.number OFFSET %s
"""
_CLAIM = "SELECT {schema}.claim_name(%s, %s, %s)"
_OWNER = "SELECT node FROM {schema}.owner WHERE name = %s AND expires > {schema}.now_ms()"
_REMOVE_EXPIRED = "SELECT {schema}.remove_expired(%s)"


class PostgreSQLCluster:
    """See `engine.nodes.Cluster` for the contract."""

    def __init__(
        self, database: Database, streams: Streams, lists: PostgreSQLNodeLists | None = None
    ) -> None:
        """
        Args:
            streams: publishes the questions of surveys.
            lists: what there is at this node, if it is one.
        """
        self._database = database
        self._streams = streams
        self._lists = lists
        self._nodes = Entries("A node", FOREIGN)

    # nodes

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        lifetimes = int(lifetime * 1000), int(NODES_REMEMBERED * 1000)
        ((swept,),) = await self._database.fetch(
            _ANNOUNCE, node.uid, pack(records.of_node(node)), *lifetimes
        )
        if self._lists is not None:
            await self._lists.renew(node.uid, swept=swept)

    async def remove_expired(self, uid: str) -> None:
        """Remove some of what has expired, if this node is the one that does. `uid`: its ID."""
        if await self.claim(CLEANER, uid, CLEANER_LIFETIME) != uid:
            return
        for _ in range(EXPIRED_STATEMENTS):
            ((removed,),) = await self._database.fetch(_REMOVE_EXPIRED, EXPIRED_AT_ONCE)
            if removed < EXPIRED_AT_ONCE:
                return

    async def withdraw(self, node: NodeInfo, held_seconds: float | None = None) -> None:
        if self._lists is not None:
            await self._lists.withdraw(node.uid, held_seconds)
        await self._database.fetch(_WITHDRAW, node.uid)

    async def statuses(self) -> list[NodeStatus]:
        return self._nodes.decoded(
            await self._database.fetch(_STATUSES),
            lambda row: records.to_status(unpack(row[0]), NODES_REMEMBERED - row[1] / 1000, row[2]),
        )

    # surveys

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        await self._database.fetch(_ASK, survey, int(lifetime * 1000))
        await self._streams.publish(Outgoing(QUESTIONS, Publication(question), INTERNAL_OPTIONS))

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        await self._database.fetch(_ANSWER, survey, answer)

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        return [answer for (answer,) in await self._database.fetch(_ANSWERS, survey, start)]

    # claims

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        ((owning,),) = await self._database.fetch(_CLAIM, digest(name), owner, int(lifetime * 1000))
        return str(owning)

    async def owner(self, name: str) -> str | None:
        rows = await self._database.fetch(_OWNER, digest(name))
        return rows[0][0] if rows else None

    async def round_trip(self) -> float:
        began = time.perf_counter()
        await self._database.fetch("SELECT 1")
        return time.perf_counter() - began
