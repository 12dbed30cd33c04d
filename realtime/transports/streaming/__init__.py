"""One client over one long HTTP response, and requests beside it.

    POST /connection/http_stream  ─► stream ─► the response goes on until the client closes
    GET|POST /connection/sse      ─►
    POST /emulation               ─► sessions ─► the stream that the body names, at any node

application   the routes
request       what each request gets
first_frame   who may begin, and the frame in a query
formats       how frames stand in a response
transport     sends them: the client's transport
stream        one client from the first byte to the last
sessions      the streams of one node by their sessions, and the way to those of other nodes

Unidirectional clients have no requests beside their stream. One of their transports is a WebSocket:

    POST     /connection/uni_http_stream  ─► stream
    GET|POST /connection/uni_sse          ─►
    /connection/uni_websocket             ─► uni_websocket

Listeners have no library at all: the address names their channels.

    GET /connection/events  ─► event_request ─► events

docs/protocol.md, 15.7, 15.8 and 17.
"""
