"""SockJS: clients over HTTP, for browsers and networks without WebSocket.

application  routes: what each request does
framing      SockJS frames
formats      how frames stand in requests and responses
iframe       the page for browsers that need our origin
websocket    SockJS over WebSocket
"""
