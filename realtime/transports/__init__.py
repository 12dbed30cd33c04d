"""What carries frames: Channels consumers, and what single ASGI servers need on top."""
