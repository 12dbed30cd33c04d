"""One client over one response, from the first byte to the last.

The head of the response leaves before anything else is done: clients wait for it, and no longer
than 5 seconds.
"""

from __future__ import annotations

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.errors import DisconnectServerError, EngineUnavailable
from realtime.node.hooks import Handshake
from realtime.node.node import Node
from realtime.transports.asgi import Exchange, Headers
from realtime.transports.emulation.incoming import IncomingFrames
from realtime.transports.streaming.formats import Format
from realtime.transports.streaming.sessions import StreamSessions, new_session
from realtime.transports.streaming.transport import StreamTransport

STREAM_HEADERS = (
    (b"x-accel-buffering", b"no"),
    (b"cache-control", b"private, no-cache, no-store, must-revalidate, max-age=0"),
    (b"pragma", b"no-cache"),
    (b"x-content-type-options", b"nosniff"),
)
"""Tell reverse proxies to pass on each byte as it comes, caches to keep none, and browsers that
what others have published is no page."""


async def serve(
    node: Node,
    sessions: StreamSessions | None,
    exchange: Exchange,
    response_format: Format,
    opening: Handshake,
    first_frame: bytes,
    headers: Headers,
) -> None:
    """Serve a client until either side ends the response.

    Args:
        sessions: take the frames of other requests; None if the client is unidirectional.
        opening: of the connection, which the process has taken.
        first_frame: what the client sent with the request.
        headers: of the response, besides those that every stream has.
    """
    codec = node.codecs.protobuf_2 if response_format.binary else node.codecs.json_2
    if sessions is None:
        codec = node.codecs.unidirectional
    await exchange.begin(response_format.content_type, [*STREAM_HEADERS, *headers])
    await exchange.write(response_format.opening)  # servers keep a head until there is a body
    transport = StreamTransport(exchange.send, response_format, new_session())
    client = Client(node, transport, codec, opening)
    transport.when_ready(client.outbox.ready)
    incoming = IncomingFrames(Dispatcher(client, recognises=False), node.spawn)
    if sessions is not None:
        sessions.add(transport.session, incoming)
    try:
        await transport.serve(exchange, client, _begin(sessions, client, incoming, first_frame))
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
