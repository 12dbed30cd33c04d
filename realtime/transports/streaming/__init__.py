"""One client over one long HTTP response, and requests beside it.

    POST /connection/http_stream  ─► stream ─► the response goes on until the client closes
    GET|POST /connection/sse      ─►
    POST /emulation               ─► sessions ─► the stream that the body names, at any node

application   the routes, and what each request gets
formats       how frames stand in a response
transport     sends them: the client's transport
stream        one client from the first byte to the last
sessions      the streams of one node by their sessions, and the way to those of other nodes

docs/protocol.md, 15.7.
"""
