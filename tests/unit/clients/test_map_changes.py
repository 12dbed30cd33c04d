"""Maps: clients put and remove keys, as far as options and hooks let them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime import payload
from realtime.node.hooks import MapChange
from realtime.node.node import Node
from tests.unit.clients.conftest import Connect
from tests.unit.clients.four_forms import FORMS, Form, FormClient
from tests.unit.clients.map_parts import OPTIONS, Reader, entries, put, remove
from tests.unit.parts import eventually

DENIED, LIMIT_EXCEEDED, BAD_REQUEST, NOT_AVAILABLE = 103, 106, 107, 108


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of `second_node`, with maps."""
    return OPTIONS | dict(getattr(request, "param", {}))


async def test_a_client_puts_and_removes(connect: Connect, second_node: Node) -> None:
    one, other = Reader(await connect("17"), "open:a"), Reader(await connect("18"), "open:a")
    await one.read()
    await other.read()
    change = {"channel": "open:a", "type": 1, "key": "k"}
    assert await one.connection.call("publish", **change, data={"n": 1}) == {}
    *_, push, reply = one.connection.messages
    assert "publish" in reply
    assert push["push"]["pub"]["info"] == {"user": "17", "client": one.connection.client.id}
    assert other.now == one.now == {"k": {"n": 1}}
    assert await one.connection.call("publish", **change, removed=True) == {}
    assert other.now == one.now == await entries(second_node, "open:a") == {}


async def test_the_removal_of_no_key_succeeds(connect: Connect, second_node: Node) -> None:
    one = Reader(await connect(), "open:a")
    await one.read()
    change = {"channel": "open:a", "type": 1, "key": "k", "removed": True}
    assert await one.connection.call("publish", **change) == {}
    assert one.connection.pushed == []


@pytest.mark.parametrize(
    ("channel", "params", "code"),
    [
        ("open:a", {"data": 1}, NOT_AVAILABLE),
        ("plain:a", {"type": 1, "key": "k", "data": 1}, NOT_AVAILABLE),
        ("map:a", {"type": 1, "key": "k", "data": 1}, DENIED),
        ("theirs:a", {"type": 1, "key": "k", "data": 1}, DENIED),
        ("nope:a", {"type": 1, "key": "k", "data": 1}, 102),
        ("open:a", {"type": 2, "key": "k", "data": 1}, BAD_REQUEST),
        ("open:a", {"type": 1, "key": "k"}, BAD_REQUEST),
        ("open:a", {"type": 1, "data": 1}, BAD_REQUEST),
        ("open:a", {"type": 1, "key": "", "data": 1}, BAD_REQUEST),
        ("open:a", {"type": 1, "key": "\0", "data": 1}, BAD_REQUEST),
        ("open:a", {"type": 1, "key": "ä" * 128, "data": 1}, BAD_REQUEST),
        ("all:a", {"type": 1, "key": "k", "data": 1}, None),
        ("open:a", {"type": 1, "key": "ä" * 127, "data": None}, None),
    ],
)
async def test_what_a_client_may_change(
    connect: Connect, second_node: Node, channel: str, params: dict[str, Any], code: int | None
) -> None:
    connection = await connect()
    wanted = {} if code is None else {"error": code}
    assert await connection.call("publish", channel=channel, **params) == wanted


async def test_subscribers_may_change_where_others_may_not(
    connect: Connect, second_node: Node
) -> None:
    one = Reader(await connect(), "theirs:a")
    await one.read()
    change = {"channel": "theirs:a", "type": 1, "key": "k", "data": 1}
    assert await one.connection.call("publish", **change) == {}
    await one.connection.call("unsubscribe", channel="theirs:a")
    assert await one.connection.call("publish", **change) == {"error": DENIED}


async def test_the_key_may_be_the_client(connect: Connect, second_node: Node) -> None:
    connection = await connect()
    change = {"channel": "cursors:a", "type": 1, "key": "another", "data": 1}
    assert await connection.call("publish", **change) == {}
    assert await entries(second_node, "cursors:a") == {connection.client.id: 1}


async def test_the_key_may_be_the_user(connect: Connect, second_node: Node) -> None:
    connection = await connect("17")
    change = {"channel": "votes:a", "type": 1, "data": 1}
    assert await connection.call("publish", **change) == {}
    assert await entries(second_node, "votes:a") == {"17": 1}


@pytest.mark.parametrize("options", [{"client_anonymous": True}], indirect=True)
@pytest.mark.parametrize("channel", ["open:a", "votes:a"])
async def test_anonymous_clients_need_an_option(
    connect: Connect, second_node: Node, channel: str
) -> None:
    connection = await connect("")
    change = {"channel": channel, "type": 1, "key": "k", "data": 1}
    assert await connection.call("publish", **change) == {"error": DENIED}


async def test_a_full_map_takes_no_other_key(connect: Connect, second_node: Node) -> None:
    connection = await connect()
    change = {"channel": "full:a", "type": 1}
    for key in ("a", "b", "a"):
        assert await connection.call("publish", **change, key=key, data=1) == {}
    assert await connection.call("publish", **change, key="c", data=1) == {"error": LIMIT_EXCEEDED}
    assert await entries(second_node, "full:a") == {"a": 1, "b": 1}


async def test_a_right_that_ends_while_the_hook_runs(
    connect: Connect, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Reader(await connect(), "theirs:a")
    await one.read()
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def hook(caller: Any, channel: str, options: Any, change: MapChange) -> MapChange:
        asked.set()
        await go_on.wait()
        return change

    monkeypatch.setattr(second_node.hooks, "put", hook)
    change = {"channel": "theirs:a", "type": 1, "key": "k", "data": 1}
    putting = one.connection.begin("publish", **change)
    await asked.wait()
    await second_node.unsubscribe_user("17", "theirs:a")
    go_on.set()
    assert await putting == {"error": DENIED}
    assert await entries(second_node, "theirs:a") == {}


async def test_the_hook_may_change_key_and_data(
    connect: Connect, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hook(caller: Any, channel: str, options: Any, change: MapChange) -> MapChange:
        return MapChange(f"{caller.user}:{change.key}", payload.check(b"2"))

    monkeypatch.setattr(second_node.hooks, "put", hook)
    connection = await connect("17")
    change = {"channel": "open:a", "type": 1, "key": "k", "data": 1}
    assert await connection.call("publish", **change) == {}
    assert await entries(second_node, "open:a") == {"17:k": 2}


# every generation and format


def change_of(form: Form, key: str, data: Any, *, removed: bool = False) -> Any:
    """What a client of a form hears as the data of a change."""
    if form.generation == 2:
        return None if removed else data
    return {"key": key, "removed": True} if removed else {"key": key, "data": data}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
async def test_plain_subscribers_of_all_forms_get_changes(second_node: Node, form: Form) -> None:
    client = FormClient(second_node, form)
    await client.connect("17")
    await client.call("subscribe", channel="map:a")
    await put(second_node, "map:a", "<k>", 7)
    await remove(second_node, "map:a", "<k>")
    await eventually(lambda: len(client.heard) == 2)
    assert client.publications() == [
        change_of(form, "<k>", 7),
        change_of(form, "<k>", None, removed=True),
    ]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
async def test_recovered_changes_of_all_forms(second_node: Node, form: Form) -> None:
    channel = "recovers:a"
    await put(second_node, channel, "k", 1)
    position = (await second_node.broker.history(channel, limit=0)).position
    await put(second_node, channel, "k", 2)
    await remove(second_node, channel, "k")
    client = FormClient(second_node, form)
    await client.connect("17")
    result = await client.call(
        "subscribe", channel=channel, recover=True, offset=1, epoch=position.epoch
    )
    assert result["recovered"]
    kept = [publication.get("data") for publication in result["publications"]]
    assert kept == [change_of(form, "k", 2), change_of(form, "k", None, removed=True)]


@pytest.mark.parametrize("form", [form for form in FORMS if form != (1, True)])
async def test_maps_of_all_forms(second_node: Node, form: Form) -> None:
    for number in range(150):
        await put(second_node, "open:a", f"k{number:04}", number)
    client = FormClient(second_node, form)
    await client.connect("17")
    request = {"channel": "open:a", "type": 1}
    page = await client.call("subscribe", **request, phase=2)
    assert (page["type"], page["phase"], page["cursor"], page["offset"]) == (1, 2, "k0099", 150)
    at = {name: page[name] for name in ("cursor", "offset", "epoch")}
    await put(second_node, "open:a", "k0000", 7)
    live = await client.call("subscribe", **request, phase=2, **at)
    assert (live["type"], live.get("phase", 0), live["offset"]) == (1, 0, 151)
    state = [*page["state"], *live["state"]]
    assert [entry["data"] for entry in state] == [
        change_of(form, f"k{number:04}", number) for number in range(150)
    ]
    assert [each["data"] for each in live["publications"]] == [change_of(form, "k0000", 7)]

    await client.call("publish", **request, key="z", data=5)
    await client.call("publish", **request, key="z", removed=True)
    assert client.publications() == [
        change_of(form, "z", 5),
        change_of(form, "z", None, removed=True),
    ]

    await client.call("unsubscribe", channel="open:a")
    at = {"offset": live["offset"], "epoch": live["epoch"], "recover": True}
    back = await client.call("subscribe", **request, phase=1, **at)
    assert (back["recovered"], back["offset"]) == (True, 153)
    assert len(back["publications"]) == 2
    await client.call("unsubscribe", channel="open:a")
    assert await client.outcome("subscribe", **request, phase=1, **at | {"epoch": "x"}) == 112
