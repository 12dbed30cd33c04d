"""Surveys as functions of the package: `connections`, `subscribers`, `nodes` and the like."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import realtime
from realtime.cluster import survey
from realtime.engine.nodes import NodeStatus
from realtime.errors import BadRequest, LimitExceeded
from realtime.node.node import Node
from realtime.serving import serving
from tests.unit.cluster.survey_parts import Reporting
from tests.unit.node.node_parts import PLAIN, publish, subscribe
from tests.unit.parts import RecordingClient


@pytest.fixture
async def serving_node() -> AsyncIterator[Node]:
    yield await serving.start()
    await serving.stop()


async def test_connections_are_oldest_first_and_marked_as_truncated(
    serving_node: Node,
) -> None:
    for name, age in (("young", 1.0), ("old", 9.0)):
        serving_node.hub.add(Reporting(name, ["a"], age))

    found = await realtime.aconnections("17")

    assert [connection.client for connection in found] == ["old", "young"]
    assert (found.total, found.truncated) == (2, False)
    assert (found.num_nodes, found.missing) == (1, [])
    assert found[0].node == serving_node.describe().name

    serving_node.hub.add(Reporting("busy", ["a"] * (survey.MAX_CHANNELS + 1)))
    assert (await realtime.aconnections("17")).truncated


async def test_connections_beyond_the_bound_are_left_out_and_counted(serving_node: Node) -> None:
    for number in range(survey.MAX_CONNECTIONS + 5):
        serving_node.hub.add(Reporting(f"C{number}", []))

    found = await realtime.aconnections("17")

    assert (len(found), found.total, found.truncated) == (
        survey.MAX_CONNECTIONS,
        survey.MAX_CONNECTIONS + 5,
        True,
    )


async def test_connections_of_anonymous_users_are_a_bad_request(serving_node: Node) -> None:
    with pytest.raises(BadRequest):
        await realtime.aconnections("")


async def test_subscribers_of_every_channel_asked_for_once_each(serving_node: Node) -> None:
    await subscribe(serving_node, RecordingClient(), PLAIN)
    found = await realtime.asubscribers(name for name in ("b", "a", "a", "nope:x"))
    assert list(found.items()) == [("b", 0), ("a", 1), ("nope:x", 0)]
    assert (found.num_nodes, found.missing) == (1, [])


async def test_too_many_channels_at_once_are_refused(serving_node: Node) -> None:
    names = [f"c{number}" for number in range(1001)]
    assert len(await realtime.asubscribers(names[:1000])) == 1000
    with pytest.raises(LimitExceeded):
        await realtime.asubscribers(names)


async def test_one_name_instead_of_a_list_is_refused(serving_node: Node) -> None:
    with pytest.raises(TypeError):
        await realtime.asubscribers("abc")


async def test_round_trip_of_the_memory_engine_is_none(serving_node: Node) -> None:
    assert await realtime.around_trip() is None


async def test_status_counts_what_was_published_and_delivered(serving_node: Node) -> None:
    for number in range(3):
        await subscribe(serving_node, RecordingClient(f"C{number}"), PLAIN)
    held = RecordingClient("held")
    await serving_node.subscriptions.add("a", held, PLAIN, held.info_in("a"))

    await publish(serving_node, PLAIN, 1)
    await publish(serving_node, PLAIN, 2, "nobody")
    await realtime.apublish_many([("a", 3), ("nobody", 4)])
    await serving_node.unsubscribe_user("17", "a")  # a control message is not a publication

    (status,) = await realtime.anodes()
    assert isinstance(status, NodeStatus)
    assert (status.messages_published, status.messages_delivered) == (4, 6)
    assert (status.alive, status.last_seen_seconds) == (True, 0.0)
    assert status.uid == serving_node.uid


async def test_info_has_the_fields_it_always_had(serving_node: Node) -> None:
    (info,) = await realtime.ainfo()

    assert set(info) == {
        "uid",
        "name",
        "version",
        "num_clients",
        "num_users",
        "num_channels",
        "uptime",
    }
