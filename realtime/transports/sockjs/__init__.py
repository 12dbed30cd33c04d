"""SockJS: the same clients over HTTP, for browsers and networks without WebSocket.

    application  which request is what
    session      a client whose requests come and go
    receiver     the response to a request, as the session's way to the client
    sessions     where the sessions are: here, or at another node (elsewhere, letters)

and a file for each transport.
"""

from realtime.transports.sockjs.application import SockJS
from realtime.transports.sockjs.websocket import SockJSConsumer

__all__ = ["SockJS", "SockJSConsumer"]
