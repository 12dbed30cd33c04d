"""What the answer of an endpoint means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.errors import Error
from realtime.proxy import responses


@pytest.mark.parametrize(
    ("error", "temporary"),
    [
        ({"code": 1000}, False),
        ({"code": 1000, "temporary": False}, False),
        ({"code": 1000, "temporary": True}, True),
        ({"code": 1000, "temporary": None}, False),
        ({"code": 100, "temporary": False}, True),
    ],
    ids=str,
)
def test_error_of_an_endpoint_may_be_temporary(error: dict[str, Any], temporary: bool) -> None:
    with pytest.raises(Error) as raised:
        responses.read(json.dumps({"error": error}).encode(), responses.data)
    assert raised.value.temporary is temporary


@pytest.mark.parametrize(
    ("result", "expected"),
    [({}, None), ({"meta": None}, None), ({"meta": {"a": 1}}, b'{"a":1}'), ({"meta": 5}, b"5")],
    ids=str,
)
def test_connect_endpoint_may_give_meta(result: dict[str, Any], expected: bytes | None) -> None:
    found = responses.read(json.dumps({"result": result}).encode(), responses.connect)
    assert found is not None
    meta = responses.meta(found)
    assert (None if meta is None else meta.json) == expected
