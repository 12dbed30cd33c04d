"""The four forms of the protocol, as bytes: two generations, each in JSON and Protobuf."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v1 import client_pb2 as pb_1
from realtime.protocol.v2 import client_pb2 as pb_2
from tests.chaos.raw_socket import BINARY, TEXT, frame
from tests.conftest import connection_token
from tests.protocol_client import undelimit

PROBE = 1_000_000_000
"""The lowest ID of a probe."""


class Message(NamedTuple):
    """A reply, or a push with ID 0."""

    id: int
    error: int
    """The code; 0 for no error."""
    data: Any
    """Of a publication; otherwise None."""


@dataclass(frozen=True)
class Form:
    """How commands and replies look in one generation and format."""

    generation: int
    is_binary: bool

    @property
    def name(self) -> str:
        return f"generation {self.generation}, {'Protobuf' if self.is_binary else 'JSON'}"

    @property
    def query(self) -> str:
        return "?format=protobuf" if self.is_binary else ""

    def frame(self, commands: bytes) -> bytes:
        """Return commands as a frame of a WebSocket."""
        return frame(commands, BINARY if self.is_binary else TEXT)

    def connect(self, user: str) -> bytes:
        """Return a connect, with ID 1."""
        return self._command(1, "connect", token=connection_token(user))

    def subscribe(self, number: int, channel: str) -> bytes:
        return self._command(number, "subscribe", channel=channel)

    def probe(self, number: int) -> bytes:
        """Return a command that each connected client may send, and that succeeds."""
        return self._command(number, "unsubscribe", channel="nowhere")

    def pong(self) -> bytes:
        return b"\0" if self.is_binary else b"{}"

    def _command(self, number: int, method: str, **params: str) -> bytes:
        if self.generation == 1:
            if self.is_binary:
                request = getattr(pb_1, f"{method.capitalize()}Request")(**params)
                command = pb_1.Command(
                    id=number,
                    method=method.upper(),
                    params=request.SerializeToString(),
                )
                return frame_message(command.SerializeToString())
            methods = ("connect", "subscribe", "unsubscribe")
            return _json({"id": number, "method": methods.index(method), "params": params})
        if self.is_binary:
            name = "Channel" if method == "unsubscribe" else method.capitalize()
            request = getattr(pb_2, f"{name}Request")(**params)
            command_2 = pb_2.Command(id=number, **{method: request.SerializeToString()})
            return frame_message(command_2.SerializeToString())
        return _json({"id": number, method: params})

    def messages(self, data: bytes) -> list[Message]:
        """Read what a frame of the server holds.

        Raises:
            ValueError: it cannot be read.
        """
        if not self.is_binary:
            return [self._of_json(json.loads(line)) for line in data.splitlines()]
        return [self._of_protobuf(message) for message in undelimit(data)]

    def _of_json(self, reply: dict[str, Any]) -> Message:
        if number := reply.get("id", 0):
            return Message(number, reply.get("error", {}).get("code", 0), None)
        push = reply.get("result" if self.generation == 1 else "push", {})
        publication = push if self.generation == 1 else push.get("pub", {})
        if push.get("type"):
            return Message(0, 0, None)
        data = publication.get("data")
        return Message(0, 0, data["data"] if self.generation == 1 and data else data)

    def _of_protobuf(self, message: bytes) -> Message:
        if self.generation == 1:
            reply_1 = pb_1.Reply.FromString(message)
            if reply_1.id:
                return Message(reply_1.id, reply_1.error.code, None)
            push_1 = pb_1.Push.FromString(reply_1.result)
            if push_1.type:
                return Message(0, 0, None)
            return Message(0, 0, json.loads(pb_1.Publication.FromString(push_1.data).data))
        reply = pb_2.Reply.FromString(message)
        if reply.id:
            return Message(reply.id, reply.error.code, None)
        raw = reply.push.pub.data
        return Message(0, 0, json.loads(raw) if raw else None)


def _json(command: dict[str, Any]) -> bytes:
    return json.dumps(command).encode()


FORMS = [Form(generation, is_binary) for generation in (1, 2) for is_binary in (False, True)]
