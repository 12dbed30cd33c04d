"""What daphne and uvicorn need, or offer, beyond ASGI."""
