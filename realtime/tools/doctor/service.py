"""Service: requests to a running service, each sent once for all checks that need it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, NamedTuple

from realtime.auth import issue
from realtime.config.options import Config
from realtime.monitoring.application import READY
from realtime.tools import websocket
from realtime.tools.remote import Remote, RemoteResponse, Unreachable, find_api_path
from realtime.tools.websocket import Closed, WebSocket, open_websocket

TOKEN_TTL = 120
"""Seconds. With a clock a minute off, a token is still valid, and a wrong key is recognised."""


class ConnectOutcome(NamedTuple):
    """The result of a connect command. Either `reply` or `closed` is None."""

    reply: dict[str, Any] | None
    closed: Closed | None
    expires_at: int
    """Expiry of the token, Unix seconds by this machine's clock."""
    answered_at: float
    seconds: float


class RunningService:
    """The service at a URL. Its requests raise Unreachable."""

    def __init__(self, remote: Remote, config: Config) -> None:
        self.remote = remote
        self.config = config
        self.path = config.websocket_handler_prefix

    @cached_property
    def plain(self) -> RemoteResponse:
        """The answer to a plain request for the path of the WebSocket."""
        return self.remote.request("GET", self.path, {})

    @cached_property
    def plain_at(self) -> float:
        """Unix seconds at which that answer arrived."""
        _ = self.plain
        return time.time()

    def plain_from(self, origin: str) -> RemoteResponse:
        """Return the answer to a plain request for that path from a page of an origin."""
        return self.remote.request("GET", self.path, {"Origin": origin})

    @cached_property
    def upgrade(self) -> RemoteResponse:
        """The answer to a handshake without an origin."""
        return self.upgrade_from("")

    @property
    def opens_websocket(self) -> bool:
        """Whether the endpoint opened a WebSocket; False also without the package websockets."""
        return websocket.INSTALLED and self.upgrade.status == 101

    def upgrade_from(self, origin: str) -> RemoteResponse:
        """Return the answer to a handshake from a page of an origin."""
        with open_websocket(self.remote, self.path, origin) as (response, _):
            return response

    @contextmanager
    def _connection(self) -> Iterator[WebSocket]:
        with open_websocket(self.remote, self.path) as (response, socket):
            if socket is None:
                raise Unreachable(
                    f"{self.remote} opened a WebSocket before, but now answers {response.status}"
                )
            yield socket

    @property
    def signs_tokens(self) -> bool:
        """Whether a token made here should be accepted."""
        config = self.config
        return (
            bool(config.connection_tokens.hmac_secret_key)
            and not config.connection_tokens.jwks_public_endpoint
            and not issue.unnamed_party(config.connection_tokens)
        )

    @cached_property
    def connected(self) -> ConnectOutcome:
        """The result of a connect command with a token made here, for a user ID of its own."""
        expires_at = int(time.time()) + TOKEN_TTL
        token = issue.connection_token(
            self.config, f"doctor-{uuid.uuid4().hex}", ttl=expires_at - time.time() + 0.5
        )
        with self._connection() as socket:
            began = time.monotonic()
            socket.send(json.dumps({"id": 1, "params": {"token": token}}))
            message = socket.receive()
            seconds = time.monotonic() - began
            now = time.time()
        if isinstance(message, Closed):
            return ConnectOutcome(None, message, expires_at, now, seconds)
        return ConnectOutcome(first(message), None, expires_at, now, seconds)

    @cached_property
    def refusal(self) -> Closed | None:
        """How the service closes after a malformed frame; None if it does not."""
        with self._connection() as socket:
            socket.send("not a command")
            message = socket.receive()
        return message if isinstance(message, Closed) else None

    def ask(self, method: str, key: str | None = None) -> RemoteResponse:
        """Send a command without params to the server API, on a new connection.

        Args:
            method: of the server API.
            key: None for the configured one.
        """
        return self.remote.command(method, b"{}", self.config.api_key if key is None else key)

    @cached_property
    def ready(self) -> RemoteResponse:
        """The answer to the question whether it is ready."""
        return self.remote.request("GET", self.config.health_handler_prefix + READY, {})

    @cached_property
    def info(self) -> RemoteResponse:
        """The answer to the command `info`."""
        return self.ask("info")

    @property
    def versions(self) -> set[str]:
        """The versions that its processes name; empty if none can be asked."""
        found = set[str]()
        if self.api_is_open:
            with suppress(ValueError, KeyError, TypeError):
                nodes = json.loads(self.info.body)["result"]["nodes"]
                found |= {str(node["version"]) for node in nodes}
        if self.signs_tokens and self.opens_websocket:
            result = (self.connected.reply or {}).get("result")
            if isinstance(result, dict) and "version" in result:
                found.add(str(result["version"]))
        return found

    @property
    def api_is_open(self) -> bool:
        """Whether the server API should answer."""
        config = self.config
        is_open = not config.api_disable and bool(config.api_key or config.api_insecure)
        return is_open and find_api_path() is not None


def nodes_of(response: RemoteResponse) -> dict[str, str]:
    """Return the nodes in an answer to `info`: uid → name. Empty if it is another answer."""
    try:
        reply = json.loads(response.body)
        return {node["uid"]: node["name"] for node in reply["result"]["nodes"]}
    except (ValueError, KeyError, TypeError):
        return {}


def first(message: str) -> dict[str, Any]:
    """Return the first reply of a frame; {} if it is not one."""
    try:
        reply = json.loads(message.split("\n", 1)[0])
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}
