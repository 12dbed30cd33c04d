"""Requests at a node, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from realtime.node.node import Node
from realtime.transports.sockjs.application import SockJS
from realtime.transports.streaming.application import Streaming
from tests.unit.parts import eventually


class Visit:
    """One request, and what the server was given to send."""

    def __init__(
        self,
        application: Streaming | SockJS,
        node: Node,
        path: str,
        query: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        method: str = "",
    ) -> None:
        """`method`: "" for POST with a body, GET without one. `headers`: lower-case names."""
        scope: dict[str, Any] = {
            "type": "http",
            "method": method or ("GET" if body is None else "POST"),
            "path": path,
            "query_string": query.encode(),
            "headers": [(n.encode(), v.encode()) for n, v in (headers or {}).items()],
        }
        self.sent: list[Mapping[str, Any]] = []
        self.may_send = asyncio.Event()
        self.may_send.set()
        self._peer: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._peer.put_nowait({"type": "http.request", "body": body or b""})
        served = application(node, scope, self._peer.get, self._send)
        self.serving = asyncio.create_task(served)

    async def _send(self, event: Mapping[str, Any]) -> None:
        self.sent.append(event)
        await self.may_send.wait()

    def leave(self) -> None:
        self._peer.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"]) if self.sent else 0

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def chunks(self) -> list[bytes]:
        """The chunks of the body that hold something."""
        return [event["body"] for event in self.sent[1:] if event["body"]]

    @property
    def text(self) -> str:
        return b"".join(self.chunks).decode()

    async def until(self, text: str) -> None:
        await eventually(lambda: text in self.text)
