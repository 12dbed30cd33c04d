"""A real PostgreSQL crashes, and another one takes over that lacks publications.

Clients are told, and lose nothing else. `make faults` plays the other faults.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.chaos.faults import FEW, play
from tests.chaos.harness import OPTIONS
from tests.chaos.postgresql import ChaosPostgres
from tests.chaos.postgresql_faults import FAULTS, UNSAFE, failed_over
from tests.conftest import connection_token, start_nodes
from tests.database_starting import require_server
from tests.protocol_client import Closed, open_client
from tests.server import TIMEOUT, Server, wait_until

PLAYED = {fault.name: fault for fault in FAULTS}

INSUFFICIENT_STATE = 3010


@pytest.mark.parametrize(
    ("name", "forgets"),
    [
        ("crash (`-m immediate`), 3 s away", False),
        ("server killed, replica without the last second", True),
    ],
)
async def test_fault_of_postgresql_loses_nothing_untold(
    tmp_path_factory: pytest.TempPathFactory, name: str, forgets: bool
) -> None:
    require_server(ChaosPostgres)
    verdict = (await play(PLAYED[name], tmp_path_factory, **FEW)).verdict

    assert verdict.complaints == [], "untold losses, twice, or out of order; presence, lists"
    assert bool(verdict.forgotten) is forgets, "acknowledged, and not in history"
    assert set(verdict.errors) <= {300, 301}  # docs/protocol.md, 5.2
    assert set(verdict.closes) == ({INSUFFICIENT_STATE} if forgets else set())
    assert set(verdict.recovered) == ({False} if forgets else set())


async def test_client_that_was_away_learns_of_lost_publications_that_no_node_had(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    require_server(ChaosPostgres)
    async with UNSAFE(tmp_path_factory) as stage:
        assert stage.replica is not None
        (node,) = stage.nodes = start_nodes(tmp_path_factory, 1, **OPTIONS, **stage.options)
        try:
            since = await subscribe(node)
            stage.replica.leave()
            node.publish("rec:0", "lost")
            await failed_over(stage)
            wait_until(lambda: publishes(node), what="a node at the new server")
            node.publish("rec:0", "after it")

            again = await subscribe_in_the_end(node, recover=True, **since)
        finally:
            node.discard()

    assert again.get("recovered", False) is False


async def subscribe(node: Server, **params: Any) -> dict[str, Any]:
    """Subscribe, and leave again. Return the result, or the position alone at first."""
    async with open_client(node.socket, token=connection_token("7")) as client:
        result = await client.result("subscribe", {"channel": "rec:0", **params})
    if params:
        return result
    return {"offset": result.get("offset", 0), "epoch": result["epoch"]}


async def subscribe_in_the_end(node: Server, **params: Any) -> dict[str, Any]:
    """Subscribe as soon as the node listens to the new server."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            with suppress(Closed):
                return await subscribe(node, **params)


def publishes(node: Server) -> bool:
    """Publish, and return whether PostgreSQL took it."""
    return "result" in node.api("publish", channel="rec:0", data="at once")
