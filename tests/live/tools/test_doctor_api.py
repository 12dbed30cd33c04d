"""The doctor at the server API and the processes of a running service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from tests.live.configurations import Serve
from tests.live.tools.command import (
    KEYS,
    OPTIONS,
    front_proxy,
    statuses,
    visit,
)
from tests.server import API_KEY, Server

pytestmark = pytest.mark.django_db  # the doctor counts pending rows


def test_service_with_another_api_key_is_named(settings: Settings, serve: Serve) -> None:
    settings.REALTIME = {**KEYS, "api_key": "another-key-of-the-server-api"}
    found = visit(serve(**OPTIONS).address)
    assert statuses(found, "api", "processes") == ["fail", "skip"]
    assert "another api_key" in found["api"]["advice"]


def test_server_api_that_needs_no_key_fails(
    own_options: None, own_server: Callable[..., Server]
) -> None:
    found = visit(own_server(api_insecure=True).address)
    assert found["api"]["status"] == "fail"
    assert "needs no key" in found["api"]["found"]


def test_proxy_that_adds_the_key_is_noticed(own_options: None, serve: Serve) -> None:
    def add_key(head: bytes) -> bytes:
        lines = head.split(b"\r\n")
        kept = [line for line in lines if not line.startswith(b"Authorization")]
        return b"\r\n".join([kept[0], b"Authorization: apikey " + API_KEY.encode(), *kept[1:]])

    with front_proxy(serve(**OPTIONS).port, change=add_key) as proxy:
        found = visit(proxy.address)

    assert found["api"]["status"] == "fail"


@pytest.mark.parametrize("options", [{"api_disable": True}, {"api_key": ""}], ids=str)
def test_closed_server_api_is_not_asked(
    settings: Settings, serve: Serve, options: dict[str, Any]
) -> None:
    settings.REALTIME = {**KEYS, **options}
    assert statuses(visit(serve(**OPTIONS).address), "api", "processes") == ["skip", "skip"]


def test_site_without_the_server_api_is_looked_at_all_the_same(
    own_options: None, settings: Settings, serve: Serve
) -> None:
    settings.ROOT_URLCONF = "tests.site.urls_without_api"
    found = visit(serve(**OPTIONS).address)
    assert statuses(found, "connect", "api", "processes") == ["ok", "skip", "skip"]
    assert found["api"]["found"] == "the URLconf has no server API"


# processes


def test_memory_engine_in_several_processes_fails(
    own_options: None, serve: Serve, own_server: Callable[..., Server]
) -> None:
    with front_proxy(serve(**OPTIONS).port, own_server(**OPTIONS).port) as proxy:
        found = visit(proxy.address)
    assert found["processes"]["status"] == "fail"
    assert "redis_url" in found["processes"]["advice"]
