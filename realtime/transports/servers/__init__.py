"""What daphne, uvicorn and granian need, or offer, beyond ASGI."""
