"""A client of the wire protocol for tests: says exactly what it is told, hides nothing.

Replies and pushes come as dictionaries of the JSON shape in both formats, so a behaviour
test need not mention which one it speaks.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from realtime.protocol.v1 import client_pb2

TIMEOUT = 60.0

METHODS: Mapping[str, tuple[int, type[Message], type[Message]]] = {
    "connect": (0, client_pb2.ConnectRequest, client_pb2.ConnectResult),
    "subscribe": (1, client_pb2.SubscribeRequest, client_pb2.SubscribeResult),
    "unsubscribe": (2, client_pb2.UnsubscribeRequest, client_pb2.UnsubscribeResult),
    "publish": (3, client_pb2.PublishRequest, client_pb2.PublishResult),
    "presence": (4, client_pb2.PresenceRequest, client_pb2.PresenceResult),
    "presence_stats": (5, client_pb2.PresenceStatsRequest, client_pb2.PresenceStatsResult),
    "history": (6, client_pb2.HistoryRequest, client_pb2.HistoryResult),
    "ping": (7, client_pb2.PingRequest, client_pb2.PingResult),
    "send": (8, client_pb2.SendRequest, client_pb2.PingResult),
    "rpc": (9, client_pb2.RPCRequest, client_pb2.RPCResult),
    "refresh": (10, client_pb2.RefreshRequest, client_pb2.RefreshResult),
    "sub_refresh": (11, client_pb2.SubRefreshRequest, client_pb2.SubRefreshResult),
}
PUSHES: Mapping[int, type[Message]] = {
    0: client_pb2.Publication,
    1: client_pb2.Join,
    2: client_pb2.Leave,
    3: client_pb2.Unsub,
}

RAW_FIELDS = {"data", "conn_info", "chan_info"}
UINT64_FIELDS = {"offset"}


class Closed(Exception):
    """The connection is closed; `code` and `reason` are those of the close frame."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class ProtocolClient:
    """One connection. `client` is the client ID once `open` has connected."""

    def __init__(self, socket: ClientConnection, format_name: str) -> None:
        self.socket = socket
        self.format = format_name
        self.client = ""
        self._next_id = 1
        self._methods: dict[int, str] = {}
        self._replies: deque[dict[str, Any]] = deque()
        self.pushes: deque[dict[str, Any]] = deque()
        """Pushes that came while a reply was awaited, oldest first."""
        self.frames: list[str | bytes] = []
        """Every frame received, as it came."""
        self.received: list[dict[str, Any]] = []
        """Every reply and push received, in order."""

    # sending

    async def send_raw(self, frame: str | bytes) -> None:
        """Send one frame as it is."""
        await self.socket.send(frame)

    async def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a command without waiting; returns its id."""
        command_id = self._next_id
        self._next_id += 1
        await self.socket.send(self.encode(command_id, method, params))
        return command_id

    async def send_together(self, *calls: tuple[str, Mapping[str, Any] | None]) -> list[int]:
        """Send several commands in one frame; returns their ids."""
        first = self._next_id
        self._next_id += len(calls)
        parts = [self.encode(first + n, *call) for n, call in enumerate(calls)]
        frame: str | bytes = (
            "\n".join(part for part in parts if isinstance(part, str))
            if self.format == "json"
            else b"".join(part for part in parts if isinstance(part, bytes))
        )
        await self.socket.send(frame)
        return list(range(first, first + len(calls)))

    def encode(self, command_id: int, method: str, params: Mapping[str, Any] | None) -> str | bytes:
        """One command as a frame. Payloads given as bytes are sent as they are."""
        number, request, _ = METHODS[method]
        self._methods[command_id] = method
        if self.format == "json":
            text = f'{{"id": {command_id}, "method": {number}'
            if params is not None:
                text += f', "params": {_json_object(params)}'
            return text + "}"
        encoded = b"" if params is None else fill(request(), params).SerializeToString()
        return delimit(command(id=command_id, method=number, params=encoded))

    async def send_params(self, method: str, params: bytes) -> int:
        """Send a command with these bytes as its params, whatever they are; returns its id."""
        command_id = self._next_id
        self._next_id += 1
        number = METHODS[method][0]
        self._methods[command_id] = method
        if self.format == "json":
            text = b'{"id": %d, "method": %d, "params": %b}' % (command_id, number, params)
            await self.socket.send(text, text=True)
        else:
            await self.socket.send(delimit(command(id=command_id, method=number, params=params)))
        return command_id

    async def abort(self) -> None:
        """Cut the TCP connection, without a close frame."""
        self.socket.transport.abort()
        await self.socket.wait_closed()

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and wait for its reply; pushes on the way are kept in `pushes`."""
        return await self.reply(await self.send(method, params))

    async def result(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As `call`, for a command that must succeed; returns its result, {} when it has none."""
        reply = await self.call(method, params)
        assert "error" not in reply, reply
        result: dict[str, Any] = reply.get("result", {})
        return result

    async def error(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As `call`, for a command that must fail; returns the error."""
        reply = await self.call(method, params)
        assert "error" in reply, reply
        error: dict[str, Any] = reply["error"]
        return error

    # receiving

    async def reply(self, command_id: int | None = None) -> dict[str, Any]:
        """The reply with this id, or the next one."""
        while True:
            for reply in self._replies:
                if command_id is None or reply["id"] == command_id:
                    self._replies.remove(reply)
                    return reply
            await self._read()

    async def push(self) -> dict[str, Any]:
        """The next push: {"type"?, "channel"?, "data"}."""
        while not self.pushes:
            await self._read()
        return self.pushes.popleft()

    async def publication(self) -> dict[str, Any]:
        """The next push, which must be a publication; returns its data."""
        push = await self.push()
        assert push.get("type", 0) == 0, push
        data: dict[str, Any] = push["data"]
        return data

    async def closed(self) -> tuple[int, str]:
        """Wait for the close frame; returns its code and reason."""
        try:
            while True:
                await self._read()
        except Closed as closed:
            return closed.code, closed.reason

    async def quiet(self) -> None:
        """Nothing is on its way: a ping is answered, and no push came before the answer."""
        before = len(self.pushes)
        await self.call("ping")
        assert len(self.pushes) == before, self.pushes

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                frame = await self.socket.recv()
        except ConnectionClosed as closed:
            frame_received = closed.rcvd
            raise Closed(
                frame_received.code if frame_received else 1006,
                frame_received.reason if frame_received else "",
            ) from None
        self.frames.append(frame)
        for reply in self._decode(frame):
            self.received.append(reply)
            if reply.get("id"):
                self._replies.append(reply)
            else:
                self.pushes.append(reply["result"])

    def _decode(self, frame: str | bytes) -> list[dict[str, Any]]:
        if self.format == "json":
            assert isinstance(frame, str), "JSON replies travel in text frames"
            assert frame.endswith("\n"), "every reply ends with a line break"
            return [json.loads(line) for line in frame.removesuffix("\n").split("\n")]
        assert isinstance(frame, bytes), "Protobuf replies travel in binary frames"
        return [
            self._decode_reply(client_pb2.Reply.FromString(message)) for message in undelimit(frame)
        ]

    def _decode_reply(self, reply: client_pb2.Reply) -> dict[str, Any]:
        if not reply.id:
            push = client_pb2.Push.FromString(reply.result)
            inner = PUSHES[int(push.type)].FromString(push.data)
            decoded: dict[str, Any] = {"data": to_json_shape(inner)}
            if push.type:
                decoded["type"] = int(push.type)
            if push.channel:
                decoded["channel"] = push.channel
            return {"result": decoded}
        if reply.HasField("error"):
            error = {"code": reply.error.code, "message": reply.error.message}
            return {"id": reply.id, "error": error}
        _, _, result = METHODS[self._methods.pop(reply.id, "ping")]
        shape = to_json_shape(result.FromString(reply.result))
        return {"id": reply.id, "result": shape}


@asynccontextmanager
async def open_client(
    url: str,
    *,
    format_name: str = "json",
    token: str | None = None,
    connect_params: Mapping[str, Any] | None = None,
    connected: bool = True,
    query: str | None = None,
    **options: Any,
) -> AsyncIterator[ProtocolClient]:
    """Open a WebSocket and, unless told otherwise, connect on it.

    `query` replaces the query string that asks for the format. `options` go to the
    WebSocket library (`additional_headers`, `subprotocols`, ...).
    """
    if query is None and format_name == "protobuf":
        query = "format=protobuf"
    if query:
        url += "?" + query
    async with connect(url, proxy=None, ping_interval=None, max_size=None, **options) as socket:
        client = ProtocolClient(socket, format_name)
        if connected:
            params = dict(connect_params or {})
            if token is not None:
                params["token"] = token
            client.client = (await client.result("connect", params))["client"]
        yield client


# Protobuf in the shape of JSON


def command(*, id: int = 0, method: int = 0, params: bytes = b"") -> client_pb2.Command:  # noqa: A002
    """A command with any number for its method, also one that does not exist."""
    return client_pb2.Command(id=id, method=method, params=params)  # type: ignore[arg-type]


def delimit(message: Message) -> bytes:
    """One message behind its length."""
    encoded = message.SerializeToString()
    length, prefix = len(encoded), b""
    while length > 127:
        prefix += bytes([length % 128 + 128])
        length //= 128
    return prefix + bytes([length]) + encoded


def undelimit(frame: bytes) -> list[bytes]:
    """The messages of a frame."""
    messages, position = [], 0
    while position < len(frame):
        length = shift = 0
        while True:
            byte = frame[position]
            position += 1
            length += (byte % 128) << shift
            shift += 7
            if byte < 128:
                break
        messages.append(frame[position : position + length])
        position += length
    return messages


def _json_object(params: Mapping[str, Any]) -> str:
    """An object whose values of type bytes are spliced in as they are."""
    members = (
        f"{json.dumps(name)}: {value.decode() if isinstance(value, bytes) else json.dumps(value)}"
        for name, value in params.items()
    )
    return "{" + ", ".join(members) + "}"


def fill(message: Message, params: Mapping[str, Any]) -> Message:
    """Set the fields of a message to values of the JSON shape; returns the message."""
    for name, value in params.items():
        if name in RAW_FIELDS:
            setattr(
                message, name, value if isinstance(value, bytes) else json.dumps(value).encode()
            )
        elif value is None:
            continue
        elif name == "subs":
            for channel, sub in value.items():
                fill(message.subs[channel], sub or {})  # type: ignore[attr-defined]
        else:
            setattr(message, name, value)
    return message


def to_json_shape(message: Message) -> dict[str, Any]:
    """A message as the JSON format would write it."""
    shape = MessageToDict(message, preserving_proto_field_name=True)
    _convert(shape, message)
    return shape


def _convert(shape: dict[str, Any], message: Message) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.name in RAW_FIELDS:
            raw = getattr(message, field.name)
            if raw:
                shape[field.name] = json.loads(raw)
        elif field.name in UINT64_FIELDS and field.name in shape:
            shape[field.name] = int(shape[field.name])
    always: Mapping[str, dict[str, Any]] = {
        "ClientInfo": {"user": "", "client": ""},
        "PresenceStatsResult": {"num_clients": 0, "num_users": 0},
        "PresenceResult": {"presence": {}},
        "HistoryResult": {"publications": []},
    }
    for name, default in always.get(message.DESCRIPTOR.name, {}).items():
        shape.setdefault(name, default)
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            for key in value:
                _convert(shape[field.name][key], value[key])
        elif hasattr(value, "DESCRIPTOR"):
            _convert(shape[field.name], value)
        else:
            for entry, inner in zip(shape[field.name], value, strict=True):
                _convert(entry, inner)
