"""The wire protocol: bytes and fields only. No sockets, no Django, no rules of the service."""
