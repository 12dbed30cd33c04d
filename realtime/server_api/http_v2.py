"""One request to `POST /api/<method>`, from bytes to bytes: the server API of newer libraries.

docs/protocol.md, 6.8.
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Raw, Struct

from realtime.cluster.member import Member
from realtime.errors import BadRequest, Error, LimitExceeded, MethodNotFound
from realtime.protocol.json_stream import Malformed
from realtime.server_api import http
from realtime.server_api.http import BAD_REQUEST, Head, Patience, Response, result_of
from realtime.server_api.methods_v2 import BATCH, METHODS, decode_batch, encode_error

_read_object = msgspec.json.Decoder(dict[str, Raw]).decode
_WHITE_SPACE = b" \t\r\n"
JSON = "application/json"

MAX_COMMANDS = 10_000
"""Commands of one batch."""
MAX_BATCH_BYTES = 32 * 1024 * 1024
"""Bytes of the replies of a batch after which its other commands are refused."""

STATUSES = {100: 500, 102: 404, 104: 404, 106: 400, 107: 400, 108: 400, 112: 416}
"""Code of an error → status, in the error mode `transport`. Others are 503: the engine is away."""


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
            return Response(200, await _run_batch(member, body), JSON)
        result = await result_of(member, METHODS[name], _decode(name, body))
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


async def _run_batch(member: Member, body: bytes) -> bytes:
    """Run the commands of a batch one after another, and return their replies.

    Raises:
        Malformed: the body is no batch.
        LimitExceeded: it has too many commands.
    """
    is_null = body.strip(_WHITE_SPACE) == b"null"
    encoded = () if is_null else decode_batch(body).commands or ()
    if len(encoded) > MAX_COMMANDS:
        raise LimitExceeded
    commands = [_split(bytes(command)) for command in encoded]
    patience = Patience(member)
    replies: list[bytes] = []
    size = 0
    for number, command in enumerate(commands):
        if number % http.COMMANDS_PER_TURN == http.COMMANDS_PER_TURN - 1:
            await asyncio.sleep(0)
        reply = await _reply(
            member, patience, command if size <= MAX_BATCH_BYTES else LimitExceeded()
        )
        size += len(reply)
        replies.append(reply)
    return b'{"replies":[%b]}' % b",".join(replies)


async def _reply(member: Member, patience: Patience, command: tuple[str, Struct] | Error) -> bytes:
    try:
        if isinstance(command, Error):
            raise command
        patience.check()
        name, params = command
        return b'{"%b":%b}' % (name.encode(), await result_of(member, METHODS[name], params))
    except Error as error:
        patience.note(error)
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
