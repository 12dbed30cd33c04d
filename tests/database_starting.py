"""A fixture that starts database servers, for every test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.database_server import DatabaseServer


def require_server(kind: type[DatabaseServer]) -> None:
    """Skip the test without the programs of a database server; in CI it fails."""
    if not kind.is_installed():
        message = f"{kind.name} is not installed ({', '.join(kind.programs)})"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(scope="session")
def start_database() -> Iterator[Callable[[type[DatabaseServer]], DatabaseServer]]:
    """Start a database server, or skip the test; in CI it fails where there is none."""
    started: list[DatabaseServer] = []

    def start(kind: type[DatabaseServer]) -> DatabaseServer:
        require_server(kind)
        server = kind()
        started.append(server)
        server.create()
        server.start()
        return server

    yield start
    for server in started:
        server.discard()
