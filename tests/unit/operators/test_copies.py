"""Mirrors: what a node copies for an operator, until when, and how much of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.cluster.member import NOTHING
from realtime.cluster.survey import decode_answer, encode_answer
from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.node.node import Node
from realtime.operators.copies import LEASE, MAX_COPIES, MAX_MIRRORS
from realtime.operators.following import Copied
from realtime.operators.observer import NodeObserver
from realtime.operators.questions import AskMirror, Copy, MirrorAnswer
from realtime.protocol.messages import Publication, StreamPosition
from realtime.tools import tail
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.node.node_parts import PLAIN, Connection, publish, subscribe
from tests.unit.parts import Clock, RecordingClient, turns

RECOVERABLE = ChannelOptions(history_size=9, history_lifetime=60, history_recover=True)


async def ask(node: Node, **fields: Any) -> MirrorAnswer:
    question = AskMirror(mirror=fields.pop("mirror", "M"), **fields)
    [answer] = (await node.survey(question, MirrorAnswer)).answers
    return decode_answer(encode_answer(answer), MirrorAnswer)


def connected(node: Node, client_id: str = "C", user: str = "17") -> RecordingClient:
    client = RecordingClient(client_id, user)
    node.hub.add(client)
    node.observer.opened(client)
    return client


def told(copies: list[Copy]) -> list[tuple[str, str, str]]:
    return [(copy.kind, copy.client, copy.text) for copy in copies]


async def test_frames_of_every_connection_of_the_user_are_copied_and_of_no_other(
    node: Node, clock: Clock
) -> None:
    before, other = connected(node, "before"), connected(node, "other", "18")
    await ask(node, user="17")
    after = connected(node, "after")
    assert before.tap is not None
    assert after.tap is not None
    before.tap.received(b'{"id":1}')
    after.tap.sent(b'{"id":2}\n')
    after.tap.closed(3012, "force disconnect")
    before.tap.closed(0, "")

    answer = await ask(node, user="17")

    assert other.tap is None
    assert told(answer.copies) == [
        ("there", "before", "websocket"),
        ("opened", "after", "websocket"),
        ("received", "before", '{"id":1}'),
        ("sent", "after", '{"id":2}'),
        ("closed", "after", "3012: force disconnect"),
        ("closed", "before", ""),
    ]


async def test_copies_that_arrived_are_not_sent_again_and_others_are(
    node: Node, clock: Clock
) -> None:
    client = connected(node)
    first = await ask(node, user="17")
    assert client.tap is not None
    client.tap.received(b'{"id":1}')
    lost = await ask(node, user="17", taken={node.uid: first.copies[-1].number})
    again = await ask(node, user="17", taken={node.uid: first.copies[-1].number})
    last = await ask(node, user="17", taken={node.uid: again.copies[-1].number})
    assert told(lost.copies) == told(again.copies) == [("received", "C", '{"id":1}')]
    assert last.copies == []


@pytest.mark.parametrize("way", ["ends", "lease"])
async def test_mirror_ends_and_leaves_the_clients_alone(node: Node, clock: Clock, way: str) -> None:
    client = connected(node)
    await ask(node, user="17")
    await ask(node, channels="*", mirror="N")
    if way == "ends":
        await ask(node, user="17", ends=True)
        await ask(node, channels="*", mirror="N", ends=True)
    else:
        await clock.advance(LEASE - 1)
        await ask(node, user="17")
        assert client.tap is not None
        await clock.advance(LEASE)

    assert client.tap is None
    assert node.observer.published is None
    assert connected(node, "later").tap is None


async def test_mirror_that_begins_again_goes_on_with_higher_numbers(
    node: Node, clock: Clock
) -> None:
    connected(node)
    first = await ask(node, user="17")
    await clock.advance(LEASE)
    second = await ask(node, user="17", taken={node.uid: first.copies[-1].number})
    assert told(second.copies) == [("there", "C", "websocket")]


async def test_two_mirrors_of_a_user_end_one_by_one(node: Node, clock: Clock) -> None:
    client = connected(node)
    await ask(node, user="17", mirror="one")
    await ask(node, user="17", mirror="other", masked=True)
    assert client.tap is not None
    client.tap.received(b'{"params":{"data":"x"}}')
    await ask(node, mirror="one", ends=True)
    client.tap.received(b'{"params":{"data":"y"}}')

    other = await ask(node, user="17", mirror="other")

    assert [copy.text for copy in other.copies] == [
        "websocket",
        '{"params":{"data":"(3 bytes)"}}',
        '{"params":{"data":"(3 bytes)"}}',
    ]


async def test_busy_user_fills_a_mirror_and_what_is_left_out_is_counted(
    node: Node, clock: Clock
) -> None:
    client = connected(node)
    await ask(node, user="17")
    assert client.tap is not None
    for number in range(MAX_COPIES + 49):
        client.tap.received(b'{"id":%d}' % number)
    full = await ask(node, user="17")
    assert (len(full.copies), full.left_out) == (MAX_COPIES, 50)
    taken = {node.uid: full.copies[-1].number}
    await ask(node, user="17", taken=taken)
    client.tap.received(b'{"id":1}')
    assert len((await ask(node, user="17", taken=taken)).copies) == 1


async def test_large_frames_fill_a_mirror_before_their_number_does(
    node: Node, clock: Clock
) -> None:
    client = connected(node)
    await ask(node, user="17")
    assert client.tap is not None
    for _ in range(MAX_COPIES - 1):
        client.tap.received(b'["%b"]' % (b"x" * 5000))
    answer = await ask(node, user="17")
    assert answer.left_out > 0
    assert len(encode_answer(answer)) < 200_000


async def test_node_has_a_bounded_number_of_mirrors(node: Node, clock: Clock) -> None:
    for number in range(MAX_MIRRORS):
        assert not (await ask(node, user="17", mirror=str(number))).refused
    assert (await ask(node, user="17", mirror="one more")).refused
    await ask(node, mirror="0", ends=True)
    assert not (await ask(node, user="17", mirror="one more")).refused


@pytest.mark.parametrize("options", [PLAIN, RECOVERABLE], ids=["plain", "recoverable"])
async def test_publications_in_matching_channels_are_copied_with_their_position(
    node: Node, clock: Clock, options: ChannelOptions
) -> None:
    for channel in ("chat:a", "chat:[b]", "news"):
        await subscribe(node, RecordingClient(), options, channel)
    await ask(node, channels="chat:*")
    for value, channel in enumerate(("chat:a", "chat:[b]", "news")):
        await publish(node, options, value, channel)

    copies = (await ask(node, channels="chat:*")).copies

    assert [(copy.kind, copy.channel, copy.text) for copy in copies] == [
        ("published", "chat:a", "0"),
        ("published", "chat:[b]", "1"),
    ]
    assert [bool(copy.epoch) for copy in copies] == [options.history_recover] * 2
    assert [copy.offset for copy in copies] == [int(options.history_recover)] * 2


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[Node]:
    """A node to which clients connect with tokens."""
    made = Node(load({"token_hmac_secret_key": SECRET, "publish": True}), observe=NodeObserver)
    await made.start()
    yield made
    await made.stop()


async def talk(node: Node, user: str) -> Connection:
    """Connect, subscribe, publish, send a wrong command and a token."""
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token(user))
    await connection.subscribe(f"of {user}")
    await connection.say(3, 3, channel=f"of {user}", data={"text": "hi", "password": "p4ssw0rd"})
    await connection.say(4, 99)
    await connection.say(5, 10, token=connection_token(user))
    await turns()
    return connection


async def test_client_gets_the_same_with_a_mirror_and_without(site: Node) -> None:
    await ask(site, user="17")
    mirrored, plain = await talk(site, "17"), await talk(site, "18")

    def said(connection: Connection, user: str) -> str:
        messages = json.dumps(connection.messages)
        return messages.replace(connection.client.id, "C").replace(user, "user")

    assert said(mirrored, "17") == said(plain, "18")
    assert (mirrored.client.tap is None, plain.client.tap is None) == (False, True)


async def test_copies_show_both_directions_and_no_secret(site: Node) -> None:
    await ask(site, user="17")
    await talk(site, "17")
    copies = (await ask(site, user="17")).copies
    kinds = [copy.kind for copy in copies]
    assert kinds.count("received") == 4  # all but connect: until then its user is not known
    assert "sent" in kinds
    texts = " ".join(copy.text for copy in copies)
    assert connection_token("17").split(".")[2] not in texts
    assert "p4ssw0rd" not in texts
    assert '{"id":5,"method":10,"params":{"token":"***"}}' in texts
    assert '"data":{"text":"hi","password":"***"}' in texts


async def test_what_cannot_be_copied_is_logged_and_delivered(
    site: Node, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise AttributeError

    monkeypatch.setattr("realtime.operators.copies.readable", fail)
    await ask(site, user="17")
    connection = await talk(site, "17")
    assert connection.reply(3) == {"id": 3, "result": {}}
    assert f"Could not copy a frame of client {connection.client.id}" in caplog.messages


async def test_change_of_a_map_is_shown_with_its_key(node: Node, clock: Clock) -> None:
    await ask(node, channels="*")
    assert node.observer.published is not None
    for removed in (False, True):
        change = Publication(NOTHING, key="a\x1b", removed=removed)
        node.observer.published("seats", change, StreamPosition(1, "E"))

    [put, removal] = [
        tail._answer(Copied("n", copy)) for copy in (await ask(node, channels="*")).copies
    ]

    assert put.text.split(maxsplit=1)[1] == "seats a\\x1b null"
    assert removal.text.split(maxsplit=1)[1] == "seats a\\x1b removed null"
    assert isinstance(removal.value, dict)
    assert (removal.value["key"], removal.value["removed"]) == ("a\x1b", True)
