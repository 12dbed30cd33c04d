"""One client over one response, from the first byte to the last.

The head of the response leaves before anything else is done: clients wait for it, and no longer
than 5 seconds.
"""

from __future__ import annotations

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.errors import DisconnectServerError, EngineUnavailable
from realtime.node.hooks import Handshake
from realtime.transports.emulation.incoming import IncomingFrames
from realtime.transports.streaming.formats import UNIDIRECTIONAL, Format
from realtime.transports.streaming.request import StreamRequest
from realtime.transports.streaming.sessions import StreamSessions
from realtime.transports.streaming.transport import StreamTransport


async def serve(
    request: StreamRequest, response_format: Format, opening: Handshake, first_frame: bytes
) -> None:
    """Serve a client until either side ends the response.

    Args:
        opening: of the connection, which the process has taken.
        first_frame: what the client sent with the request.
    """
    node, exchange = request.node, request.exchange
    codec = node.codecs.protobuf_2 if response_format.binary else node.codecs.json_2
    sessions: StreamSessions | None = request.sessions
    if response_format in UNIDIRECTIONAL:
        codec, sessions = node.codecs.unidirectional, None
    await exchange.begin(response_format.content_type, request.stream_headers)
    await exchange.write(response_format.opening)  # servers keep a head until there is a body
    transport = StreamTransport(exchange, response_format)
    client = Client(node, transport, codec, opening)
    incoming = IncomingFrames(Dispatcher(client, recognises=False), node.spawn)
    if sessions is not None:
        sessions.add(transport.session, incoming)
    try:
        await transport.serve(client, _begin(sessions, client, incoming, first_frame))
    finally:
        if sessions is not None:
            sessions.remove(transport.session)
        incoming.close()


async def _begin(
    sessions: StreamSessions | None, client: Client, incoming: IncomingFrames, first_frame: bytes
) -> None:
    try:
        if sessions is not None:
            await sessions.open()
    except EngineUnavailable:
        client.close(DisconnectServerError())
    else:
        await incoming.take([first_frame])
