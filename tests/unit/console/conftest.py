"""Servers that do not mean well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.console.hostile import Answer, HostileServer, Serve


@pytest.fixture
def hostile() -> Iterator[Serve]:
    servers: list[HostileServer] = []

    def serve(answer: Answer) -> HostileServer:
        servers.append(HostileServer(answer))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()
