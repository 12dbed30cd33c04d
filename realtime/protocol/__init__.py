"""The wire protocol: bytes and fields, without sockets, Django or rules of the service."""
