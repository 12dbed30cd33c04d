"""Requests to `POST /api/<method>`, and the errors that it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.live.api_client import Answer, post
from tests.server import API_KEY, Server

KEY: Mapping[str, str] = {"X-API-Key": API_KEY}
TRANSPORT: Mapping[str, str] = {**KEY, "X-Centrifugo-Error-Mode": "transport"}

NOT_FOUND = {"error": {"code": 102, "message": "namespace not found"}}
METHOD_NOT_FOUND = {"error": {"code": 104, "message": "method not found"}}
LIMIT_EXCEEDED = {"error": {"code": 106, "message": "limit exceeded"}}
BAD_REQUEST = {"error": {"code": 107, "message": "bad request"}}
NOT_AVAILABLE = {"error": {"code": 108, "message": "not available"}}
UNRECOVERABLE = {"error": {"code": 112, "message": "unrecoverable position"}}


def send(server: Server, name: str, body: bytes, headers: Mapping[str, str] = KEY) -> Answer:
    return post(server, body, path=f"/api/{name}", headers=headers)


def call(server: Server, name: str, /, **params: Any) -> Any:
    """The body of the answer, which is JSON without a line break."""
    answer = send(server, name, json.dumps(params).encode())
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert not answer.body.endswith(b"\n")
    return json.loads(answer.body)


def result(server: Server, name: str, /, **params: Any) -> Any:
    return call(server, name, **params)["result"]
