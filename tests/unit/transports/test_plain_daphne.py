"""daphne's WebSockets whose handshake is plain: nothing differs for applications and clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from realtime.transports.servers import daphne_channel, daphne_protocol
from realtime.transports.servers.plain import HEAD_MAX_BYTES
from tests.unit.transports.client_frames import HEAD, TEXT, any_frames, is_ours, told
from tests.unit.transports.daphne_connections import DaphneConnection, DaphneServer

TOP = HEAD.index(b"Upgrade: ")


@pytest.fixture
def daphne(monkeypatch: pytest.MonkeyPatch) -> DaphneServer:
    opens = daphne_protocol.opener(is_ours)
    monkeypatch.setattr(daphne_channel.TimedChannel, "opens", staticmethod(opens))
    return DaphneServer()


@pytest.fixture
def connect(daphne: DaphneServer) -> Iterator[Callable[..., DaphneConnection]]:
    connections: list[DaphneConnection] = []

    def connect(*parts: bytes, accepts: bool = True) -> DaphneConnection:
        connection = DaphneConnection(daphne)
        connections.append(connection)
        for part in parts:
            connection.send(part)
        if accepts:
            daphne.sockets[-1].serverAccept("spoken")
        return connection

    yield connect
    for connection in connections:
        connection.peer.close()
        connection.transport.socket.close()


Connect = Callable[..., DaphneConnection]


def messages(daphne: DaphneServer) -> list[Any]:
    """The messages that the application got."""
    events = [daphne.events.get_nowait() for _ in range(daphne.events.qsize())]
    return [
        event.get("text", event.get("bytes"))
        for event in events
        if event["type"] == "websocket.receive"
    ]


async def test_daphne_s_application_and_client_see_no_difference(
    daphne: DaphneServer, connect: Connect
) -> None:
    plain = connect(HEAD)
    assert isinstance(plain.transport.protocol, daphne_protocol.AdvisingProtocol)
    assert plain.transport.producer is None  # the HTTP channel is gone
    other = connect(HEAD[:TOP], HEAD[TOP:])
    assert other.transport.producer is not None

    assert plain.received() == other.received()
    first, second = map(told, daphne.scopes)
    assert {**first, "server": None} == {**second, "server": None}
    assert daphne.sockets[0]._reads_messages


async def test_daphne_opens_sockets_of_the_site_itself(connect: Connect) -> None:
    connection = connect(HEAD.replace(b"/ours", b"/site"))
    assert connection.transport.producer is not None
    assert b" 101 " in connection.received()


async def test_client_of_daphne_names_no_root_path(connect: Connect, daphne: DaphneServer) -> None:
    connect(HEAD.replace(b"Cookie: ", b"Daphne-Root-Path: /a\r\nCookie: "))
    assert daphne.scopes[0]["root_path"] == ""


async def test_header_with_an_underscore_does_not_reach_applications_of_daphne(
    connect: Connect, daphne: DaphneServer
) -> None:
    connect(HEAD.replace(b"Cookie: ", b"X_Real_IP: 192.0.2.1\r\nCookie: "))
    assert not [name for name, _ in daphne.scopes[0]["headers"] if b"_" in name]


@any_frames
async def test_daphne_s_application_gets_every_message(
    daphne: DaphneServer, connect: Connect, sent: list[bytes], expected: list[str | bytes]
) -> None:
    connection = connect(HEAD)
    messages(daphne)
    for part in sent:
        connection.send(part)
    assert messages(daphne) == expected


async def test_frames_before_daphne_s_response_are_kept_for_the_application(
    daphne: DaphneServer, connect: Connect
) -> None:
    connect(HEAD, TEXT)
    assert messages(daphne) == ["text"]


async def test_handshake_before_daphne_s_response_to_another_opens_nothing(
    daphne: DaphneServer, connect: Connect
) -> None:
    connect(HEAD, HEAD, accepts=False)
    assert len(daphne.scopes) == 1


async def test_bytes_before_daphne_s_response_are_bounded(
    daphne: DaphneServer, connect: Connect
) -> None:
    connection = connect(HEAD, accepts=False)
    aborted: list[bool] = []
    connection.transport.abortConnection = lambda: aborted.append(True)
    connection.send(bytes(HEAD_MAX_BYTES))
    assert not aborted
    connection.send(b"a")
    assert aborted


async def test_daphne_refuses_where_the_application_refuses(
    daphne: DaphneServer, connect: Connect
) -> None:
    connection = connect(HEAD, accepts=False)
    daphne.sockets[0].serverReject()
    assert connection.received().startswith(b"HTTP/1.1 403 ")


async def test_version_of_autobahn_that_keeps_the_key_elsewhere_reads_handshakes_itself(
    daphne: DaphneServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Any = daphne_protocol.AdvisingProtocol.succeedHandshake

    def succeed(self: Any, result: Any) -> Any:
        return original(self, result)

    monkeypatch.setattr(daphne_protocol.AdvisingProtocol, "succeedHandshake", succeed)

    connection = connect(HEAD)

    assert connection.transport.producer is not None
    assert b" 101 " in connection.received()
