"""Relay messages on the wire. Nodes of two versions exchange them during an upgrade."""

from __future__ import annotations

import msgspec
import pytest

from realtime.transports.emulation.relay_messages import (
    Attach,
    CheckReceiver,
    Deliver,
    Detach,
    RelayMessage,
    Release,
    WatchReceiver,
    WrittenFrames,
    decode,
)
from realtime.transports.sockjs.application import KIND
from tests.unit.transports.emulation.nodes import Nodes, claimed

MESSAGES: dict[bytes, RelayMessage] = {
    b'["attach","s",7,131072,"a",["p"]]': Attach("s", 7, 131072, "a", ("p",)),
    b'["watch","s",7]': WatchReceiver("s", 7),
    b'["detach","s",7]': Detach("s", 7),
    b'["release","s",7]': Release("s", 7),
    b'["deliver","s",["{}","{}"],"a",["p"]]': Deliver("s", ["{}", "{}"], "a", ("p",)),
    b'["written",7,0,["o"],false]': WrittenFrames(7, 0, ["o"], False),
    b'["check",7]': CheckReceiver(7),
}


@pytest.mark.parametrize(("body", "message"), MESSAGES.items(), ids=map(bytes.decode, MESSAGES))
def test_relay_message_has_the_form_that_nodes_of_all_versions_read(
    body: bytes, message: RelayMessage
) -> None:
    assert msgspec.json.encode(message) == body
    assert decode(body) == message


OLDER: dict[bytes, RelayMessage] = {
    b'["attach","s",7,131072]': Attach("s", 7, 131072),
    b'["deliver","s",["{}","{}"]]': Deliver("s", ["{}", "{}"]),
    b'["attach","s",7,131072,"a"]': Attach("s", 7, 131072, "a"),
    b'["deliver","s",["{}","{}"],"a"]': Deliver("s", ["{}", "{}"], "a"),
}


@pytest.mark.parametrize(("body", "message"), OLDER.items(), ids=map(bytes.decode, OLDER))
def test_relay_message_of_an_older_node_is_read(body: bytes, message: RelayMessage) -> None:
    assert decode(body) == message


async def test_nodes_of_all_versions_find_a_session_by_the_same_claim(nodes: Nodes) -> None:
    one, _ = nodes.nodes
    visitor = nodes.visitor()
    visitor.name = "session1"
    await visitor.poll(one)
    await claimed(nodes, one)
    # its name is a secret: any client that knows it can send in the session
    assert [*nodes.cluster.claims] == ["sockjs.765383c90f3c68a7996f3088a0b61ef2"]
    assert KIND == "sockjs"
