"""A client of any form, generation and format, that tells what happens in the same words.

client = FormClient(node, Form(2, binary=True))
await client.connect("17")
result = await client.call("subscribe", channel="a")
client.heard   # [("publication", 1, 7), ("join", "16"), ("unsubscribe", 2000), ...]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from google.protobuf.message import Message

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.node.node import Node
from realtime.protocol.frames import Frame
from realtime.protocol.v1 import client_pb2 as first_pb2
from realtime.protocol.v2 import client_pb2 as second_pb2
from tests.conftest import connection_token
from tests.protocol_client import (
    METHODS,
    PUSHES,
    command,
    delimit,
    fill,
    to_json_shape,
    undelimit,
)
from tests.unit.parts import eventually

Heard = tuple[Any, ...]

FIRST_KINDS = ("pub", "join", "leave", "unsubscribe")
"""The types of pushes of the first generation, by the names of the second one."""

SECOND_REQUESTS: Mapping[str, type[Message]] = {
    "connect": second_pb2.ConnectRequest,
    "subscribe": second_pb2.SubscribeRequest,
    "unsubscribe": second_pb2.ChannelRequest,
    "publish": second_pb2.PublishRequest,
    "presence": second_pb2.ChannelRequest,
    "presence_stats": second_pb2.ChannelRequest,
    "sub_refresh": second_pb2.SubRefreshRequest,
    "history": second_pb2.HistoryRequest,
}


class Form(NamedTuple):
    """A generation and a format."""

    generation: int
    binary: bool

    @property
    def name(self) -> str:
        return f"{'protobuf' if self.binary else 'json'}-{self.generation}"


FORMS = [Form(generation, binary) for generation in (1, 2) for binary in (False, True)]


class FormClient:
    """One client on a transport that keeps what it is told."""

    name = "websocket"
    session = ""
    ends_with_push = False

    def __init__(self, node: Node, form: Form) -> None:
        self.ready = True
        self.backlog = 0
        self.form = form
        self.user = ""
        self.heard: list[Heard] = []
        """What was pushed, in order."""
        self.closes: list[int] = []
        self._node = node
        self._methods: dict[int, str] = {}
        self._replies: dict[int, dict[str, Any] | int] = {}
        """Results, and codes of errors, by ID."""
        self.client = Client(node, self, node.codecs.of(1, form.binary))
        self._dispatcher = Dispatcher(self.client)

    @property
    def id(self) -> str:
        return self.client.id

    def send(self, frame: Frame) -> int:
        """Take a frame of the node."""
        read = {
            Form(1, binary=False): self._read_json_1,
            Form(1, binary=True): self._read_protobuf_1,
            Form(2, binary=False): self._read_json_2,
            Form(2, binary=True): self._read_protobuf_2,
        }[self.form]
        read(frame.data)
        return 0

    async def close(self, code: int, reason: str) -> None:
        self.closes.append(code)

    def closed(self) -> None:
        pass

    async def connect(self, user: str) -> None:
        """Connect with a token of this user; "" for an anonymous one without a token."""
        self.user = user
        await self.call("connect", **({"token": connection_token(user)} if user else {}))

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Run a command; returns its result. It must succeed."""
        result = await self.outcome(method, **params)
        assert not isinstance(result, int), (method, result)
        return result

    async def outcome(self, method: str, **params: Any) -> dict[str, Any] | int:
        """Run a command; returns its result, or the code of the error that it is answered with."""
        number = len(self._methods) + 1
        self._methods[number] = method
        await self._dispatcher.receive(self._encode(number, method, params))
        await eventually(lambda: number in self._replies)
        return self._replies[number]

    def publications(self) -> list[Any]:
        """The data of the publications so far."""
        return [heard[1] for heard in self.heard if heard[0] == "publication"]

    def _encode(self, number: int, method: str, params: dict[str, Any]) -> bytes:
        code, request, _ = METHODS[method]
        if self.form == (1, True):
            params_1 = fill(request(), params).SerializeToString()
            return delimit(command(id=number, method=code, params=params_1))
        if self.form == (2, True):
            params_2 = fill(SECOND_REQUESTS[method](), params).SerializeToString()
            return delimit(second_pb2.Command(id=number, **{method: params_2}))
        named = (
            {method: params} if self.form.generation == 2 else {"method": code, "params": params}
        )
        return json.dumps({"id": number, **named}).encode()

    def _read_json_1(self, data: bytes) -> None:
        for message in map(json.loads, data.splitlines()):
            if "error" in message:
                self._replies[message["id"]] = message["error"]["code"]
            elif "id" in message:
                self._replies[message["id"]] = message.get("result", {})
            else:
                push = message["result"]
                self._hear(FIRST_KINDS[push.get("type", 0)], push["data"])

    def _read_json_2(self, data: bytes) -> None:
        for message in map(json.loads, data.splitlines()):
            if "error" in message:
                self._replies[message["id"]] = message["error"]["code"]
            elif "id" in message:
                number = message["id"]
                self._replies[number] = message[self._methods[number]]
            else:
                self._hear_second(message["push"])

    def _read_protobuf_1(self, data: bytes) -> None:
        for reply in map(first_pb2.Reply.FromString, undelimit(data)):
            if reply.HasField("error"):
                self._replies[reply.id] = reply.error.code
            elif reply.id:
                result = METHODS[self._methods[reply.id]][2]
                self._replies[reply.id] = to_json_shape(result.FromString(reply.result))
            else:
                push = first_pb2.Push.FromString(reply.result)
                kind = int(push.type)
                self._hear(FIRST_KINDS[kind], to_json_shape(PUSHES[kind].FromString(push.data)))

    def _read_protobuf_2(self, data: bytes) -> None:
        for reply in map(second_pb2.Reply.FromString, undelimit(data)):
            if reply.HasField("error"):
                self._replies[reply.id] = reply.error.code
            elif reply.id:
                result = getattr(reply, self._methods[reply.id])
                self._replies[reply.id] = to_json_shape(result)
            else:
                self._hear_second(to_json_shape(reply.push))

    def _hear_second(self, push: dict[str, Any]) -> None:
        kind = next(key for key in push if key != "channel")
        self._hear(kind, push[kind])

    def _hear(self, kind: str, what: dict[str, Any]) -> None:
        if kind == "pub":
            self.heard.append(("publication", what["data"], what.get("offset", 0)))
        elif kind == "unsubscribe":
            self.heard.append((kind, what.get("code")))
        else:
            self.heard.append((kind, what["info"]["user"]))
