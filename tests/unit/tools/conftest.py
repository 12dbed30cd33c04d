"""Servers that do not mean well, and fresh projects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from realtime.tools.init.plan import OPTION_VARIABLES
from tests.unit.tools.hostile import Answer, HostileServer, Serve
from tests.unit.tools.init_project import Project


@pytest.fixture
def hostile() -> Iterator[Serve]:
    servers: list[HostileServer] = []

    def serve(answer: Answer) -> HostileServer:
        servers.append(HostileServer(answer))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A fresh project, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in OPTION_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path)
