"""An outbox with a transport that keeps its frames."""

from __future__ import annotations

from realtime.errors import DisconnectSlow
from realtime.node.outbox import ClientOutbox, Flusher
from realtime.protocol.frames import Frame


class RecordingTransport:
    """A transport that keeps its frames; `buffered` is what its server has not sent."""

    name = "websocket"
    session = ""
    ends_with_push = False

    def __init__(self) -> None:
        self.ready = True
        self.buffered = 0
        self.takes = 0
        """Frames after which it is not ready; 0: it always is."""
        self.frames: list[Frame] = []

    @property
    def backlog(self) -> int:
        return self.buffered

    def send(self, frame: Frame) -> int:
        self.frames.append(frame)
        self.ready = len(self.frames) != self.takes
        return self.buffered

    async def close(self, code: int, reason: str) -> None:
        pass

    def closed(self) -> None:
        pass

    @property
    def data(self) -> list[bytes]:
        return [frame.data for frame in self.frames]


class Peer:
    """A transport with its outbox."""

    def __init__(
        self,
        flusher: Flusher,
        *,
        binary: bool = False,
        separator: bytes = b"",
        limit_bytes: int = 100,
    ) -> None:
        self.transport = RecordingTransport()
        self.overflows = 0
        self.outbox = ClientOutbox(
            self.transport,
            flusher,
            binary=binary,
            separator=separator,
            limit_bytes=limit_bytes,
            overflow=self._overflow,
        )

    def _overflow(self, disconnect: DisconnectSlow) -> None:
        self.overflows += 1
