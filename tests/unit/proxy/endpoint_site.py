"""Endpoints, and in place of their HTTP client one that responds as a test says."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from realtime.config.reader import load
from realtime.node.hooks import Caller, Handshake
from realtime.payload import Payload
from realtime.proxy.endpoints import Endpoints

KINDS = ("connect", "refresh", "subscribe", "publish", "rpc")
URLS = {f"proxy_{kind}_endpoint": f"http://127.0.0.1:9/{kind}" for kind in KINDS}
DATA = b'{"a": 1}'
JSON, BINARY = Handshake(), Handshake(encoding="binary")
PROTOBUF = Handshake(protocol="protobuf", encoding="binary")
NO_JSON = b"\x00\xff no JSON"


def base64_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


class Site:
    """Endpoints, and in place of their HTTP client one that responds as a test says."""

    def __init__(self) -> None:
        self.response: Any = {}
        """What every endpoint responds: bytes, or anything else as JSON."""
        self.requests: list[tuple[Mapping[str, str], bytes]] = []
        """Headers and body of what was sent."""
        self.options: dict[str, Any] = dict(URLS)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        self.requests.append((headers, body))
        plain = isinstance(self.response, bytes)
        return self.response if plain else json.dumps(self.response).encode()

    async def ask(
        self,
        kind: str,
        handshake: Handshake = JSON,
        *,
        data: bytes = DATA,
        method: str = "m",
        user: str = "17",
        meta: Payload | None = None,
        **more: str,
    ) -> Any:
        """Ask the endpoint of a kind; `more` are arguments of that kind alone."""
        endpoints = Endpoints(load(self.options))
        caller = Caller("C", "" if kind == "connect" else user, handshake, meta)
        match kind:
            case "connect":
                names = {"name": "", "version": ""} | more
                return await endpoints.connect(caller, data, **names)
            case "refresh":
                return await endpoints.refresh(caller)
            case "subscribe":
                return await endpoints.subscribe(caller, "news", more.get("token", ""))
            case "publish":
                return await endpoints.publish(caller, "news", Payload(data, data))
        return await endpoints.rpc(caller, method, data)
