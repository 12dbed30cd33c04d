"""SockJS: the same clients over HTTP, for browsers and networks without WebSocket.

application  which request is what
framing      SockJS' frames
formats      a frame in the form of each transport
iframe       the page for libraries that need our origin
websocket    SockJS over WebSocket
"""
