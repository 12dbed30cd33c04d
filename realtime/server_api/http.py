"""One request of the HTTP API, from bytes to bytes.

docs/protocol.md, 6.1 to 6.3. Statuses, pipelining and framing are those of the reference server.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from typing import NamedTuple
from urllib.parse import parse_qs

import msgspec
from msgspec import Raw, Struct

from realtime.cluster.member import Member
from realtime.config.options import Config
from realtime.engine import factory
from realtime.errors import (
    EngineUnavailable,
    Error,
    InternalError,
)
from realtime.payload import escape
from realtime.protocol.json_stream import Malformed, ObjectDecoder, decode_stream, method_number
from realtime.protocol.messages import UInt32
from realtime.server_api import methods, operations
from realtime.server_api.errors import EngineAway
from realtime.server_api.results import ErrorBody

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


def refuse(config: Config, method: str, authorization: str, query: str) -> Response | None:
    """Check method and key of a request before its body is read.

    Args:
        config: the options in force.
        method: the HTTP method, upper case.
        authorization: the value of that header, "" if it is missing.
        query: the query string.

    Returns:
        The response that refuses the request, or None.
    """
    if config.api_disable:
        return NOT_FOUND
    if method != "POST":
        return METHOD_NOT_ALLOWED
    if config.api_insecure or is_key(config.api_key, authorization, query):
        return None
    return UNAUTHORIZED


def is_key(api_key: str, authorization: str, query: str) -> bool:
    """Return whether a request has the key, in the header Authorization or in the query.

    Args:
        api_key: the option; "": no key is right.
        authorization: the value of that header, "" if it is missing.
        query: the query string.
    """
    if not api_key:
        return False
    # header values are bytes, which servers and Django decode as Latin-1
    match authorization.encode("latin-1", "replace").split(None, 1):
        case [scheme, key] if scheme.lower() == b"apikey" and same(key.rstrip(), api_key):
            return True
    return same(_query_key(query).encode("utf-8", "surrogateescape"), api_key)


def _query_key(query: str) -> str:
    """Return the first `api_key` of a query string, "" if there is none."""
    try:
        return parse_qs(query, max_num_fields=MAX_QUERY_FIELDS).get("api_key", [""])[0]
    except ValueError:
        return ""


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
    run = _Run(member)
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
                publishing.append(asyncio.create_task(run.reply(command, method)))
                continue
            if len(replies) % COMMANDS_PER_TURN == COMMANDS_PER_TURN - 1:
                await asyncio.sleep(0)
            replies.append(await run.reply(command, method))
        if publishing:
            replies += await asyncio.gather(*publishing)
    except Malformed:
        if publishing:
            await asyncio.gather(*publishing)
        return BAD_REQUEST
    return Response(200, b"".join(replies), content_type)


class _Run:
    """The run of one body.

    While Redis does not answer, each command fails after `redis_read_timeout`. Once that time has
    passed since the start, the remaining commands fail at once.
    """

    def __init__(self, member: Member) -> None:
        self._member = member
        self._deadline = time.monotonic() + factory.answer_timeout(member.config)
        self._away = False

    async def reply(self, command: _Command, method: int) -> bytes:
        """Run a command and return the line that answers it."""
        if self._away and time.monotonic() >= self._deadline:
            return _line(command, b"error", _error(EngineAway()))
        try:
            result = await methods.run(self._member, method, bytes(command.params))
        except Error as error:
            return _line(command, b"error", _error(error))
        except EngineUnavailable as error:
            self._away = True
            if self._member.outage.begins():
                logger.error("API command failed, as others may for now: %s", error)
            return _line(command, b"error", _error(operations.api_error(error)))
        except Exception:
            logger.exception("API command failed")
            return _line(command, b"error", _error(InternalError()))
        return _line(command, b"result", escape(result))


def _error(error: Error) -> bytes:
    return escape(msgspec.json.encode(ErrorBody.of(error)))


def _line(command: _Command, key: bytes, value: bytes) -> bytes:
    if command.id:
        return b'{"id":%d,"%b":%b}\n' % (command.id, key, value)
    return b'{"%b":%b}\n' % (key, value)
