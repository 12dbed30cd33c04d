"""The unidirectional WebSocket: one push per text frame, and one message of the client.

The message is the connect request, unless the query holds it. Whatever comes later is dropped.

docs/protocol.md, 15.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from realtime.clients.dispatch import Dispatcher
from realtime.config.options import Config
from realtime.errors import Disconnect
from realtime.node.node import Node
from realtime.protocol.codec import Codec
from realtime.protocol.frames import Frame, single_messages
from realtime.protocol.negotiation import Agreement, Codecs
from realtime.transports.asgi import Receive, Scope, Send
from realtime.transports.sending import WebSocketTransport, WrappingTransport
from realtime.transports.streaming.first_frame import (
    KEY,
    frame_of_query,
    hide_fields,
    is_connect_request,
)
from realtime.transports.streaming.sessions import new_session
from realtime.transports.websocket import WebSocketConsumer, deny

PATH = "/connection/uni_websocket"


def serves_socket(path: str, config: Config) -> bool:
    """Return whether a path is that of the unidirectional WebSocket, and not turned off."""
    return path == PATH and config.uni_websocket


def _frames(frame: Frame) -> Sequence[Frame]:
    """Return a frame for each message. See `Frame.form`."""
    return [Frame(message, binary=False) for message in single_messages(frame)]


class UniWebSocketTransport(WrappingTransport):
    """Sends each message in a frame of its own. See `outbox.Transport`.

    The WebSocket takes one frame after another, so the rest of a turn may wait here.
    """

    name = "uni_websocket"
    ends_with_push = True

    def __init__(self, websocket: WebSocketTransport) -> None:
        super().__init__(websocket)
        self.session = new_session()
        self._waiting: deque[Frame] = deque()
        self._on_ready: Callable[[], None] | None = None
        websocket.when_ready(self._send_waiting)

    def when_ready(self, callback: Callable[[], None]) -> None:
        self._on_ready = callback

    @property
    def ready(self) -> bool:
        return not self._waiting and self._websocket.ready

    @property
    def backlog(self) -> int:
        return self._websocket.backlog + sum(len(frame.data) for frame in self._waiting)

    def send(self, frame: Frame) -> int:
        backlog = 0
        frames = frame.form(_frames)
        for position, single in enumerate(frames):
            if not self._websocket.ready:
                self._waiting.extend(frames[position:])
                return self.backlog
            backlog = self._websocket.send(single)
        return backlog

    def _send_waiting(self) -> None:
        while self._waiting and self._websocket.ready:
            self._websocket.send(self._waiting.popleft())
        if self.ready and self._on_ready is not None:
            self._on_ready()

    def closed(self) -> None:
        self._waiting.clear()
        self._on_ready = None
        super().closed()


class UniWebSocketConsumer(WebSocketConsumer):
    """One unidirectional WebSocket connection."""

    takes_any_page = False

    def __init__(self) -> None:
        super().__init__()
        self._first_frame = b""
        """The connect request of the query, until it is handled."""
        self._has_request = False

    async def admit(
        self, config: Config, node: Node | None, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        self._first_frame = frame_of_query(scope.get("query_string", b""))
        hide_fields(scope, (KEY,))
        if not await super().admit(config, node, scope, receive, send):
            return False
        self._has_request = bool(self._first_frame)
        limit = config.message_size_limit_bytes
        if limit is not None and len(self._first_frame) > limit:
            await deny(scope, send, 413, b"Content Too Large\n")
            return False
        if self._has_request and not is_connect_request(self._first_frame):
            await deny(scope, send, 400, b"Bad Request\n")
            return False
        return True

    def negotiate(self, scope: Scope, codecs: Codecs) -> Agreement:
        return Agreement(codecs.unidirectional, None, is_final=True)

    def transport(self, websocket: WebSocketTransport, node: Node) -> UniWebSocketTransport:
        return UniWebSocketTransport(websocket)

    def last_frames(self, codec: Codec, disconnect: Disconnect) -> Sequence[Frame]:
        push = codec.disconnect(disconnect)
        return () if push is None else (Frame(push, binary=False),)

    def frames(self, data: bytes, node: Node) -> Sequence[bytes]:
        if self._has_request:
            return ()
        self._has_request = True
        return (data,)

    async def receive_frames(
        self, dispatcher: Dispatcher, receive: Receive, limit: int | None
    ) -> None:
        frame, self._first_frame = self._first_frame, b""
        if frame:
            await dispatcher.receive(frame)
        await super().receive_frames(dispatcher, receive, limit)
