"""Requests to the server API, byte for byte, and the ways a site can serve it."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.server import API_KEY, ListeningProcess, Server

TIMEOUT = 60.0

SHELLS: Mapping[str, Mapping[str, Any]] = {
    "asgi": {},
    "view": {"environment": {"TEST_API_SHELL": "0"}},
    "asgi-uvicorn": {"server": "uvicorn"},
    "view-uvicorn": {"server": "uvicorn", "environment": {"TEST_API_SHELL": "0"}},
}
"""What serves the API, in front of Django or as a REST framework view, under which server."""

BOTH = ("asgi", "view")

OPTIONS: Mapping[str, Any] = {
    "namespaces": [
        {
            "name": "kept",
            "presence": True,
            "publish": True,
            "history_size": 5,
            "history_lifetime": 300,
        },
        {"name": "off"},
        {"name": "size", "history_size": 5},
        {"name": "lifetime", "history_lifetime": 300},
        {"name": "joins", "presence": True, "join_leave": True},
        {
            "name": "hidden",
            "presence": True,
            "presence_disable_for_client": True,
            "history_size": 5,
            "history_lifetime": 300,
            "history_disable_for_client": True,
        },
    ],
}
"""Options of the shared servers, one namespace for each combination the methods look at."""

AUTHORIZED: Mapping[str, str] = {"Authorization": f"apikey {API_KEY}"}


class Answer(NamedTuple):
    """One HTTP response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def replies(self) -> list[Any]:
        """The body, which must be one JSON value a line, each line ended."""
        assert self.body.endswith(b"\n"), self.body
        return [json.loads(line) for line in self.body[:-1].split(b"\n")]


def start(serve: Callable[..., Server], shell: str, **options: Any) -> Server:
    """A shared server that serves the API through this shell; see `SHELLS`."""
    return serve(**SHELLS[shell], **(options or OPTIONS))


async def subscribe(client: Any, *channels: str) -> None:
    """Subscribe a client that `connect` made."""
    for channel in channels:
        await client.result("subscribe", {"channel": channel})


@contextmanager
def connection(server: ListeningProcess) -> Iterator[http.client.HTTPConnection]:
    """One HTTP connection, for any number of requests."""
    opened = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=TIMEOUT)
    try:
        yield opened
    finally:
        opened.close()


def send(
    opened: http.client.HTTPConnection,
    body: bytes | Iterable[bytes] = b"",
    *,
    method: str = "POST",
    path: str = "/api",
    headers: Mapping[str, str] = AUTHORIZED,
) -> Answer:
    """Send a request and read the response. A body in parts is sent in chunks."""
    chunked = not isinstance(body, bytes)
    extra = {"Transfer-Encoding": "chunked"} if chunked else {}
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        # the server may refuse by the head, and close before the whole body was sent
        opened.request(method, path, body, {**headers, **extra}, encode_chunked=chunked)
    response = opened.getresponse()
    return Answer(response.status, response.headers, response.read())


def post(
    server: ListeningProcess,
    body: bytes | Iterable[bytes] = b"",
    *,
    method: str = "POST",
    path: str = "/api",
    headers: Mapping[str, str] = AUTHORIZED,
) -> Answer:
    """`send` on a connection of its own, with the right key unless told otherwise."""
    with connection(server) as opened:
        return send(opened, body, method=method, path=path, headers=headers)


def line(method: str | int, params: Any = None, **fields: Any) -> bytes:
    """One command as JSON; no params when they are None."""
    command: dict[str, Any] = {**fields, "method": method}
    if params is not None:
        command["params"] = params
    return json.dumps(command).encode() + b"\n"
