"""A receiver whose failed connect is an HTTP status, with the option `uni_error_mode`.

The head waits until connect has succeeded or failed. After that the stream is like any other.

docs/protocol.md, 15.8.
"""

from __future__ import annotations

from realtime.clients.client import Client
from realtime.clients.commands import connection
from realtime.errors import (
    BadRequest,
    Disconnect,
    DisconnectBadRequest,
    DisconnectServerError,
    Error,
    Expired,
    InternalError,
    LimitExceeded,
    NamespaceNotFound,
    TokenExpired,
    TooManyRequests,
)
from realtime.node.hooks import Handshake
from realtime.protocol.messages import Command, ConnectRequest, Method
from realtime.protocol.v2 import codes
from realtime.transports.streaming.deferred import Answer, DeferredTransport, refusal
from realtime.transports.streaming.formats import Format
from realtime.transports.streaming.request import StreamRequest

_STATUSES = {
    InternalError.code: 500,
    NamespaceNotFound.code: 400,
    LimitExceeded.code: 400,
    BadRequest.code: 400,
    TokenExpired.code: 401,
    Expired.code: 401,
    TooManyRequests.code: 429,
    # close codes
    3004: 500,
    3005: 401,
    3013: 429,
    3500: 401,
    3501: 400,
    3502: 503,
}
"""Status by the code of an error, or of a close. Others: 503 for "come back", and 403."""


async def serve(
    request: StreamRequest, response_format: Format, opening: Handshake, first_frame: bytes
) -> None:
    """Serve a unidirectional client until either side ends the response.

    Args:
        opening: of the connection, which the process has taken.
        first_frame: its connect request.
    """
    node = request.node
    transport = DeferredTransport(request, response_format, _answer_of_close)
    client = Client(node, transport, node.codecs.unidirectional, opening)
    node.spawn(_connect(client, transport, first_frame))
    await transport.serve(client)


async def _connect(client: Client, transport: DeferredTransport, first_frame: bytes) -> None:
    command = Command(1, Method.CONNECT, first_frame)
    client.session.handling = True
    try:
        await connection.connect(client, command)
    except Error as error:
        client.node.counters.command_errors.add(str(command.method), str(error.code))
        transport.fail(client, error, _answer_of_error(error))
    except Disconnect as disconnect:
        transport.fail(client, disconnect, _answer(client, command, disconnect))
    except Exception as error:  # raised by the engine, a hook, or a defect of this service
        client.log_failed("command connect", error)
        failure = DisconnectServerError()
        transport.fail(client, failure, _answer(client, command, failure))
    else:
        if not client.is_closing():
            await transport.begin()
    finally:
        client.session.handling = False


def _answer(client: Client, command: Command, why: Disconnect) -> Answer:
    if isinstance(why, DisconnectBadRequest):
        request = client.codec.params(command, ConnectRequest)
        if not request.token:  # nothing else says who the client is
            return refusal(401, *codes.closing(why))
    return _answer_of_close(*codes.closing(why))


def _answer_of_error(why: Error) -> Answer:
    status = _STATUSES.get(why.code, 503 if why.temporary else 403)
    return refusal(status, why.code, codes.message_of(why))


def _answer_of_close(code: int, reason: str) -> Answer:
    later = code % 1000 < codes.HALF
    return refusal(_STATUSES.get(code, 503 if later else 403), code, reason)
