"""How POST /api/<method> tells errors, by the option."""

from __future__ import annotations

import json

import pytest

from realtime.server_api import http, http_v2
from tests.unit.parts import Clock
from tests.unit.transports.emulation.parts import open_node


@pytest.mark.parametrize(("mode", "status"), [("", 200), ("transport", 404)])
async def test_option_says_whether_the_status_tells_errors(
    clock: Clock, mode: str, status: int
) -> None:
    async with open_node(clock, api_error_mode=mode) as node:
        head = http.Head("POST", "", None, None, None)
        response = await http_v2.handle(node, "publish", head, b'{"channel":"nope:a","data":1}')

    assert response.status == status
    body = json.loads(response.body)
    assert (body if mode else body["error"])["code"] == 102
