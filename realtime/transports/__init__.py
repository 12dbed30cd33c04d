"""Bytes in and out: WebSocket, emulated connections, and what single ASGI servers need."""
