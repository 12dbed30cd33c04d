"""Listeners at a node without a server: what is shared, what fails, and what is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlencode

import pytest

from realtime.errors import Disconnect, Error, InternalError, PermissionDenied
from realtime.node.hooks import Caller, Hooks, Identity, Permission
from realtime.node.node import Node
from realtime.protocol import event_ids
from realtime.protocol.messages import StreamPosition
from realtime.server_api import operations
from realtime.timers import Timers
from realtime.transports.streaming.application import EVENTS_PATH, Streaming
from tests.unit.parts import Clock, data, eventually, position_of, turns
from tests.unit.suspended_engine import SuspendedEngine
from tests.unit.transports.emulation.parts import open_node
from tests.unit.transports.streaming import visits

KEPT = {"history_size": 50, "history_lifetime": 300, "history_recover": True}
Options: TypeAlias = Mapping[str, Any]

OPTIONS: Options = {"events": True, **KEPT}


class Visit(visits.Visit):
    """One request of a listener."""

    def __init__(self, streaming: Streaming, node: Node, *channels: str, **fields: str) -> None:
        last = fields.pop("last_event_id", "")
        headers = {"last-event-id": last} if last else {}
        query = [*(("channel", channel) for channel in channels), *fields.items()]
        super().__init__(streaming, node, EVENTS_PATH, urlencode(query), headers=headers)


def publish(node: Node, channel: str, text: str) -> Any:
    return node.publish(channel, data(text), node.config.channel)


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    async with open_node(clock, **OPTIONS) as opened:
        yield opened


# what is shared


async def test_event_of_one_channel_is_encoded_once_for_all(node: Node) -> None:
    streaming = Streaming()
    visits = [Visit(streaming, node, "news") for _ in range(10)]
    for visit in visits:
        await visit.until("id: ")
    await publish(node, "news", '"a"')
    for visit in visits:
        await visit.until('data: "a"')

    assert len({id(visit.chunks[-1]) for visit in visits}) == 1
    assert len(node.hub.feeds["news"]._followed) == 1
    for visit in visits:
        visit.leave()
    await asyncio.gather(*(visit.serving for visit in visits))
    await eventually(lambda: not node.hub.feeds and not node.hub.clients)


async def test_listeners_that_want_text_or_json_get_their_own(node: Node) -> None:
    streaming = Streaming()
    visits = [Visit(streaming, node, "news", format=name) for name in ("json", "text", "text")]
    for visit in visits:
        await visit.until("id: ")
    await publish(node, "news", '"<b>"')
    for visit, text in zip(visits, (r'"\u003cb\u003e"', "<b>", "<b>"), strict=True):
        await visit.until(f"data: {text}\n")


# where it goes on

KEY = event_ids.key_of("news")


@pytest.mark.parametrize(
    "since",
    [
        f"{KEY}.0.another",
        f"{KEY}.{2**64 - 1}.another",
        f"{KEY}.{2**64 - 1}.{{epoch}}",
        f"{KEY}.{2**64}.e",
        f"{KEY}.-1.e",
        f"{KEY}.1.{'e' * 65}",
        f"{KEY}.1.e\r\nevent: x",
        "~",
        "\0",
        "é",
        "x" * (event_ids.MAX_LENGTH + 1),
    ],
)
@pytest.mark.parametrize("way", ["since", "last_event_id"])
async def test_id_that_is_none_of_this_stream_is_a_reset(node: Node, since: str, way: str) -> None:
    top = (await publish(node, "news", "1")).position
    visit = Visit(Streaming(), node, "news", **{way: since.format(epoch=top.epoch)})
    await visit.until('event: reset\ndata: {"channels":["news"]}\n\n')
    await publish(node, "news", "2")
    await visit.until("data: 2\n")
    assert "data: 1\n" not in visit.text
    assert "event: x" not in visit.text


async def test_listener_gets_the_newest_publication_without_asking(clock: Clock) -> None:
    cache: Options = {"force_recovery_mode": "cache", "auto_cache_recover": True}
    async with open_node(clock, **OPTIONS, **cache) as node:
        for text in ("1", "2"):
            await publish(node, "news", text)
        visit = Visit(Streaming(), node, "news")
        await visit.until("data: 2\n")
        last = visit.text.rpartition("id: ")[2].partition("\n")[0]
        again = Visit(Streaming(), node, "news", since=last)
        await again.until("id: ")
        await publish(node, "news", "3")
        await again.until("data: 3\n")

        assert "data: 1\n" not in visit.text
        assert "data: 2\n" not in again.text


# what fails


class Site(Hooks):
    """A site whose hook about channels a test holds, or lets fail."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.failure: Exception | None = None

    def decides(self, channel: str, options: object) -> bool:
        return True

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        return Identity("17")

    async def subscribe(self, caller: Caller, channel: str, token: str) -> Permission:
        self.asked.append(channel)
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return Permission()


@pytest.fixture
def hooks() -> Site:
    return Site()


async def test_nothing_is_sent_before_every_hook_has_allowed_it(node: Node, hooks: Site) -> None:
    node.hooks = hooks
    visit = Visit(Streaming(), node, "a", "b")
    await eventually(lambda: hooks.asked == ["a"])
    assert visit.sent == []
    hooks.may_answer.set()
    await visit.until("id: ")
    assert hooks.asked == ["a", "b"]


@pytest.mark.parametrize(
    ("failure", "status", "text"),
    [
        (Error(1001, "closed <today>"), 403, '"code":1001,"message":"closed \\u003ctoday\\u003e"'),
        (InternalError(), 200, "retry: "),
        (Error(1001, "busy", temporary=True), 200, "retry: "),
        (RuntimeError("a defect of the site"), 200, "retry: "),
    ],
)
async def test_hook_that_fails_decides_the_answer(
    node: Node, hooks: Site, failure: Exception, status: int, text: str
) -> None:
    node.hooks, hooks.failure = hooks, failure
    hooks.may_answer.set()
    visit = Visit(Streaming(), node, "a")
    await visit.serving
    assert visit.status == status
    assert text in visit.text
    await eventually(lambda: not node.hub.clients)


@pytest.mark.parametrize(
    ("failure", "code"), [(Disconnect(4000, "banned"), "4500"), (PermissionDenied(), "103")]
)
async def test_listener_that_a_hook_refuses_is_counted_by_its_code(
    node: Node, hooks: Site, failure: Exception, code: str
) -> None:
    node.hooks, hooks.failure = hooks, failure
    hooks.may_answer.set()
    visit = Visit(Streaming(), node, "a")
    await visit.serving
    assert (visit.status, node.counters.disconnects.counts()) == (403, {(code,): 1})


async def test_channel_that_the_server_ends_while_a_hook_is_asked_is_left(
    node: Node, hooks: Site
) -> None:
    node.hooks = hooks
    visit = Visit(Streaming(), node, "a", "b")
    await eventually(lambda: hooks.asked == ["a"])
    await operations.unsubscribe(node, "17", "b")
    hooks.may_answer.set()
    await visit.until("event: unsubscribe")
    await publish(node, "b", "1")
    await publish(node, "a", "2")
    await visit.until("data: 2\n")

    assert "data: 1\n" not in visit.text
    assert visit.text.rstrip("\n").endswith(f"~{event_ids.key_of('b')}") or (
        f"{event_ids.key_of('b')}~" in visit.text
    )


async def test_listener_counts_where_a_user_has_one_connection(clock: Clock, hooks: Site) -> None:
    one: Options = {"user_subscribe_to_personal": True, "user_personal_single_connection": True}
    async with open_node(clock, **OPTIONS, **one, presence=True) as node:
        node.hooks = hooks
        hooks.may_answer.set()
        older = Visit(Streaming(), node, "a")
        await older.until("id: ")
        newer = Visit(Streaming(), node, "a")
        await newer.until("id: ")
        await older.serving

        assert "id: end\nevent: disconnect\n" in older.text
        await publish(node, "a", "1")
        await newer.until("data: 1\n")


@pytest.mark.parametrize("method", ["subscribe", "history"])
async def test_engine_that_is_away_sends_the_listener_back(clock: Clock, method: str) -> None:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    async with open_node(clock, engine, **OPTIONS) as node:
        engine.failing.add(method)
        since = event_ids.encode({"news": StreamPosition(0, "e")})
        visit = Visit(Streaming(), node, "news", since=since)
        await visit.serving
        engine.failing.clear()

        assert visit.status == 200
        assert visit.text.count("retry: ") == 2
        assert "id: " not in visit.text
        await eventually(lambda: not node.hub.clients)


async def test_rights_count_anew_at_each_return(node: Node, hooks: Site) -> None:
    node.hooks = hooks
    hooks.may_answer.set()
    visit = Visit(Streaming(), node, "a", "b")
    await visit.until("id: ")
    last = visit.text.rpartition("id: ")[2].partition("\n")[0]
    visit.leave()
    await visit.serving
    await publish(node, "a", "1")

    hooks.failure = PermissionDenied()
    again = Visit(Streaming(), node, "a", "b", since=last)
    await again.serving

    assert again.status == 403
    assert '"code":103,"message":"permission denied","channel":"a"' in again.text


# what is bounded


@pytest.mark.parametrize("channels", [("news",), ("news", "other")])
async def test_missed_publications_that_no_queue_can_hold_become_a_reset(
    clock: Clock, channels: tuple[str, ...]
) -> None:
    limits: Options = {"client_queue_max_size": 1000, "client_recovery_max_size": 2000}
    async with open_node(clock, **OPTIONS, **limits) as node:
        top = await position_of(node.broker, "news")
        for number in range(30):
            await publish(node, "news", f'"{number:0>90}"')
        since = event_ids.encode({"news": StreamPosition(0, top.epoch)})
        visit = Visit(Streaming(), node, *channels, since=since)
        await visit.until('event: reset\ndata: {"channels":["news"]}\n\n')
        await publish(node, "news", '"live"')
        await visit.until('data: "live"\n')

        assert visit.text.count("data: ") == 2


async def test_listener_that_reads_slowly_comes_back_and_misses_nothing(clock: Clock) -> None:
    async with open_node(clock, **OPTIONS, client_queue_max_size=1000) as node:
        visit = Visit(Streaming(), node, "news")
        await visit.until("id: ")
        (client,) = node.hub.clients.values()
        visit.may_send.clear()
        for number in range(30):
            await publish(node, "news", f'"{number:0>90}"')
            await asyncio.sleep(0)
        await eventually(client.is_closing)
        visit.may_send.set()
        await visit.serving
        last = visit.text.rpartition("id: ")[2].partition("\n")[0]

        again = Visit(Streaming(), node, "news", since=last)
        await again.until(f'data: "{29:0>90}"')
        again.leave()
        await again.serving

        assert "event: reset" not in again.text
        both = visit.text + again.text
        assert [both.count(f'data: "{number:0>90}"') for number in range(30)] == [1] * 30


async def test_listener_that_is_disconnected_while_its_head_leaves_stays_away(
    node: Node, hooks: Site
) -> None:
    node.hooks = hooks
    hooks.may_answer.set()
    visit = Visit(Streaming(), node, "a")
    visit.may_send.clear()
    await eventually(lambda: bool(visit.sent))
    await operations.disconnect(node, "17")
    (client,) = node.hub.clients.values()
    await eventually(client.is_closing)
    await turns(20)
    before = [event["type"] for event in visit.sent]
    visit.may_send.set()
    await visit.serving

    assert before == ["http.response.start"]
    assert visit.text.startswith("retry: ")
    assert "id: end\nevent: disconnect\n" in visit.text
