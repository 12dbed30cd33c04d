"""One request to `POST /api/<method>`, from bytes to bytes: the server API of newer libraries.

docs/protocol.md, 6.8.
"""

from __future__ import annotations

import logging
import time
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from realtime.cluster.member import Member
from realtime.config.options import Config
from realtime.engine import factory
from realtime.errors import (
    BadRequest,
    EngineUnavailable,
    Error,
    InternalError,
    LimitExceeded,
    MethodNotFound,
)
from realtime.payload import escape
from realtime.protocol.json_stream import Malformed
from realtime.server_api import http, operations
from realtime.server_api.errors import EngineAway
from realtime.server_api.http import BAD_REQUEST, Response
from realtime.server_api.methods_v2 import BATCH, METHODS, decode_batch, encode, encode_error, pause

logger = logging.getLogger("realtime.server_api")

_read_object = msgspec.json.Decoder(dict[str, Raw]).decode
_WHITE_SPACE = b" \t\r\n"
JSON = "application/json"

MAX_COMMANDS = 10_000
"""Commands of one batch."""
MAX_BATCH_BYTES = 32 * 1024 * 1024
"""Bytes of the replies of a batch after which its other commands are refused."""

STATUSES = {100: 500, 102: 404, 104: 404, 106: 400, 107: 400, 108: 400, 112: 416}
"""Code of an error → status, in the error mode `transport`. Others are 503: Redis is away."""


class Head(NamedTuple):
    """What counts of the head of a request. A header that is missing is None."""

    method: str
    query: str
    key: str | None
    """X-API-Key."""
    authorization: str | None
    error_mode: str | None
    """X-Centrifugo-Error-Mode."""


def refuse(config: Config, head: Head) -> Response | None:
    """Check method and key of a request before its body is read; see `http.refuse`."""
    if head.key is None:
        return http.refuse(config, head.method, head.authorization or "", head.query)
    refused = http.refuse(config, head.method, "", head.query)
    if refused is not http.UNAUTHORIZED or not config.api_key:
        return refused
    given = head.key.encode("latin-1", "replace")
    return None if http.same(given, config.api_key) else refused


async def handle(member: Member, name: str, head: Head, body: bytes) -> Response:
    """Run one method.

    Args:
        member: the member of the service that runs it.
        name: one of `methods_v2.NAMES`.
        head: of the request.
        body: its params as a JSON object.

    Returns:
        The result or the error; 400 for a body that is no object of that shape, 503 while the
        member is stopping.
    """
    if member.stopping:
        return http.UNAVAILABLE
    try:
        if name == BATCH:
            return Response(200, await _Batch(member).run(body), JSON)
        result = await _run(member, name, _decode(name, body))
    except Malformed:
        return BAD_REQUEST
    except Error as error:
        if "transport" in (head.error_mode, member.config.api_error_mode):
            return Response(STATUSES.get(error.code, 503), encode_error(error), JSON)
        return Response(200, b'{"error":%b}' % encode_error(error), JSON)
    return Response(200, b'{"result":%b}' % result, JSON)


def _decode(name: str, params: bytes) -> Struct:
    """Decode the params of a method; null has no field.

    Raises:
        Malformed: they have another shape.
    """
    row = METHODS[name]
    decoded: Struct = row.shape() if params.strip(_WHITE_SPACE) == b"null" else row.decode(params)
    return decoded


async def _run(member: Member, name: str, params: Struct) -> bytes:
    """Run one method, and return its result.

    Raises:
        Error: the method refuses, or failed.
    """
    try:
        return escape(encode(await METHODS[name].run(member, params)))
    except Error:
        raise
    except EngineUnavailable as error:
        if member.outage.begins():
            logger.error("API command failed, as others may for now: %s", error)
        raise operations.api_error(error) from None
    except Exception:
        logger.exception("API command failed")
        raise InternalError from None


class _Batch:
    """The run of one batch. Its commands run one after another.

    While Redis does not answer, each command fails after `redis_read_timeout`. Once that time has
    passed since the start, the remaining commands fail at once.
    """

    def __init__(self, member: Member) -> None:
        self._member = member
        self._deadline = time.monotonic() + factory.answer_timeout(member.config)
        self._away = False

    async def run(self, body: bytes) -> bytes:
        """Return the replies.

        Raises:
            Malformed: the body is no batch.
            LimitExceeded: it has too many commands.
        """
        is_null = body.strip(_WHITE_SPACE) == b"null"
        encoded = () if is_null else decode_batch(body).commands or ()
        if len(encoded) > MAX_COMMANDS:
            raise LimitExceeded
        commands = [_split(bytes(command)) for command in encoded]
        replies: list[bytes] = []
        size = 0
        for number, command in enumerate(commands):
            if number % http.COMMANDS_PER_TURN == http.COMMANDS_PER_TURN - 1:
                await pause()
            reply = await self._reply(command, size)
            size += len(reply)
            replies.append(reply)
        return b'{"replies":[%b]}' % b",".join(replies)

    async def _reply(self, command: tuple[str, Struct] | Error, size: int) -> bytes:
        try:
            if isinstance(command, Error):
                raise command
            if size > MAX_BATCH_BYTES:
                raise LimitExceeded
            if self._away and time.monotonic() >= self._deadline:
                raise EngineAway
            name, params = command
            return b'{"%b":%b}' % (name.encode(), await _run(self._member, name, params))
        except Error as error:
            self._away = self._away or error.code >= EngineAway.code
            return b'{"error":%b}' % encode_error(error.with_traceback(None))


def _split(command: bytes) -> tuple[str, Struct] | Error:
    """Return the method of a command and its params, or the error that answers it.

    Raises:
        Malformed: the command is no object, or the params have another shape.
    """
    if command == b"null":
        return BadRequest()
    try:
        entries = _read_object(command)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Malformed("not an object") from None
    for key, params in entries.items():
        name = key.lower()
        if name in METHODS and bytes(params) != b"null":
            return name, _decode(name, bytes(params))
    return MethodNotFound()
