"""Which pages may use HTTP streams."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.node.hooks import Handshake, NoHooks
from realtime.transports.streaming.first_frame import may_use
from tests.unit.parts import Clock
from tests.unit.transports.emulation.parts import open_node

OWN = "https://example.org"


class Logins(NoHooks):
    """The site, where login sessions identify clients."""

    def trusts_page(self, handshake: Handshake) -> bool:
        return handshake.headers["origin"] == OWN


def request(**headers: str) -> dict[str, Any]:
    pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return {"type": "http", "headers": pairs, "query_string": b""}


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        (request(), True),
        (request(origin=OWN), True),
        (request(origin="https://elsewhere.example"), False),
        (request(origin="null"), False),
        (request(sec_fetch_site="same-origin"), True),
        (request(sec_fetch_site="none"), True),
        (request(sec_fetch_site="same-site"), False),
        (request(sec_fetch_site="cross-site"), False),
    ],
)
async def test_only_pages_of_the_site_may_act_with_its_logins(
    clock: Clock, scope: dict[str, Any], allowed: bool
) -> None:
    async with open_node(clock) as node:
        node.hooks = Logins()

        assert may_use(node, scope) is allowed


async def test_any_page_may_use_a_service_without_logins(clock: Clock) -> None:
    async with open_node(clock) as node:
        assert may_use(node, request(origin="https://elsewhere.example"))


async def test_allowed_origins_decide_before_logins(clock: Clock) -> None:
    async with open_node(clock, allowed_origins=["https://*.example"]) as node:
        node.hooks = Logins()

        assert may_use(node, request(origin="https://elsewhere.example"))
        assert not may_use(node, request(origin=OWN))
