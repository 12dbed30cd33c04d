"""One request of the HTTP API, from bytes to bytes: `POST /api`, and what `http_v2` shares with it.

docs/protocol.md, 6.1 to 6.3. Statuses, pipelining and framing are those of the reference server.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from msgspec import Raw, Struct

from realtime.cluster.member import Member
from realtime.config.options import Config
from realtime.engine import factory
from realtime.errors import EngineUnavailable, Error, InternalError
from realtime.payload import escape
from realtime.protocol.json_stream import Malformed, ObjectDecoder, decode_stream, method_number
from realtime.protocol.messages import UInt32
from realtime.server_api import methods, operations
from realtime.server_api.methods_v2 import Row, encode, encode_error

logger = logging.getLogger("realtime.server_api")

_WHITE_SPACE = b" \t\r\n"

MAX_QUERY_FIELDS = 100
COMMANDS_PER_TURN = 64
"""Commands of one body that run before the event loop gets a turn, or that are pipelined."""


class Response(NamedTuple):
    """An HTTP response. `content_type` None: without that header."""

    status: int
    body: bytes = b""
    content_type: str | None = None


METHOD_NOT_ALLOWED = Response(405)
UNAUTHORIZED = Response(401)
BAD_REQUEST = Response(400, b"Bad Request\n", "text/plain; charset=utf-8")
TOO_LARGE = Response(413)
UNAVAILABLE = Response(503)
NOT_FOUND = Response(404)


class _Command(Struct, forbid_unknown_fields=True):
    id: UInt32 | None = None
    method: int | str = 0
    params: Raw = Raw(b"")


_decode_command = ObjectDecoder(_Command)


def _decode(text: bytes) -> _Command:
    """Decode one command; JSON null is a command without fields."""
    if text.strip(_WHITE_SPACE) == b"null":
        return _Command()
    return _decode_command(text)


class Head(NamedTuple):
    """What counts of the head of a request. A header that is missing is None."""

    method: str
    """Upper case."""
    query: str
    key: str | None = None
    """X-API-Key; `POST /api` does not read it."""
    authorization: str | None = None
    error_mode: str | None = None
    """X-Centrifugo-Error-Mode."""


def refuse(config: Config, head: Head) -> Response | None:
    """Return the response that refuses a request before its body is read, or None."""
    if config.api_disable:
        return NOT_FOUND
    if head.method != "POST":
        return METHOD_NOT_ALLOWED
    if config.api_insecure or is_key(config.api_key, head):
        return None
    return UNAUTHORIZED


def is_key(api_key: str, head: Head) -> bool:
    """Return whether a request has the key, in one of the headers or in the query.

    X-API-Key stands in for Authorization. An empty option has no right key.
    """
    if not api_key:
        return False
    # header values are bytes, which servers and Django decode as Latin-1
    given = (head.key or "").encode("latin-1", "replace")
    if head.key is None:
        match (head.authorization or "").encode("latin-1", "replace").split(None, 1):
            case [scheme, key] if scheme.lower() == b"apikey":
                given = key.rstrip()
    return same(given, api_key) or same(_query_key(head.query), api_key)


def _query_key(query: str) -> bytes:
    """Return the first `api_key` of a query string, b"" if there is none."""
    try:
        keys = parse_qs(query, max_num_fields=MAX_QUERY_FIELDS).get("api_key", [""])
    except ValueError:
        return b""
    return keys[0].encode("utf-8", "surrogateescape")


def same(given: bytes, key: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given, key.encode())


async def handle(member: Member, content_type: str, body: bytes) -> Response:
    """Run the commands of a body, in order.

    Where a body is malformed, the commands before that place have run.

    Args:
        member: the member of the service that runs them.
        content_type: of the request; the response has the same.
        body: one or more commands in JSON, one after another.

    Returns:
        One reply a line; 400 for a malformed body, 503 while the member is stopping.
    """
    if member.stopping:
        return UNAVAILABLE
    if not body:
        return BAD_REQUEST
    patience = Patience(member)
    replies: list[bytes] = []
    # publications whose replies come after `replies`
    publishing: list[asyncio.Task[bytes]] = []
    try:
        for command in decode_stream(body, _decode):
            method = method_number(command.method, methods.METHOD_NUMBERS)
            pipelined = member.pipelines_publishes and method == methods.PUBLISH
            if publishing and (not pipelined or len(publishing) == COMMANDS_PER_TURN):
                replies += await asyncio.gather(*publishing)
                publishing.clear()
            if pipelined:
                publishing.append(asyncio.create_task(_reply(member, patience, command, method)))
                continue
            if len(replies) % COMMANDS_PER_TURN == COMMANDS_PER_TURN - 1:
                await asyncio.sleep(0)
            replies.append(await _reply(member, patience, command, method))
        if publishing:
            replies += await asyncio.gather(*publishing)
    except Malformed:
        if publishing:
            await asyncio.gather(*publishing)
        return BAD_REQUEST
    return Response(200, b"".join(replies), content_type)


async def _reply(member: Member, patience: Patience, command: _Command, method: int) -> bytes:
    """Run a command and return the line that answers it."""
    try:
        patience.check()
        row, params = methods.read(method, bytes(command.params))
        key, value = b"result", await result_of(member, row, params)
    except Error as error:
        patience.note(error)
        key, value = b"error", encode_error(error)
    if command.id:
        return b'{"id":%d,"%b":%b}\n' % (command.id, key, value)
    return b'{"%b":%b}\n' % (key, value)


class Patience:
    """How long the commands of one request wait for the engine.

    While the engine does not answer, each command fails after `answer_timeout`. Once that time has
    passed since the start, the remaining commands fail at once.
    """

    def __init__(self, member: Member) -> None:
        self._config = member.config
        self._began = time.monotonic()
        self._is_away = False

    def check(self) -> None:
        """Raise operations.EngineAway if a command has failed, and the time is over."""
        waited = time.monotonic() - self._began
        if self._is_away and waited >= factory.answer_timeout(self._config):
            raise operations.EngineAway

    def note(self, error: Error) -> None:
        """Note the error of a command."""
        self._is_away = self._is_away or error.code >= operations.EngineAway.code


async def result_of(member: Member, row: Row[Any, Any], params: Struct) -> bytes:
    """Run a method and return its result as JSON.

    Raises:
        Error: the method refuses, or failed.
    """
    try:
        return escape(encode(await row.run(member, params)))
    except Error:
        raise
    except EngineUnavailable as error:
        if member.outage.begins():
            logger.error("API command failed, as others may for now: %s", error)
        raise operations.api_error(error) from None
    except Exception:
        logger.exception("API command failed")
        raise InternalError from None
