"""Whatever JSON a client sends, an adapter takes it or says why not."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime import payload
from realtime.typed.adapters import adapter_of
from realtime.typed.contract import Mismatch
from tests.unit.parts import json_values, quickly
from tests.unit.typed.schemas import TYPES

ADAPTERS = [adapter_of(declared) for declared, _, _ in TYPES]

NAMES = st.sampled_from(
    ["text", "stars", "type", "at", "children", "name", "kind", "pets", "next", "rating", "words"]
)
OBJECTS = st.dictionaries(NAMES, json_values | st.lists(st.dictionaries(NAMES, json_values)))


def offer(raw: bytes) -> None:
    """Give JSON to every adapter."""
    data = payload.check(raw).json
    for adapter in ADAPTERS:
        with suppress(Mismatch):
            adapter.decode(data)


@quickly
@given(json_values | OBJECTS)
def test_values_of_any_shape(value: object) -> None:
    offer(json.dumps(value).encode())


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 900 + b"]" * 900,
        b'{"name":"a","children":[' * 200 + b"]}" * 200,
        b'{"next":' * 400 + b"null" + b"}" * 400,
        b"1e400",
        b"9" * 5000,
        b'{"stars":' + b"9" * 5000 + b"}",
        b'{"amount":1e400}',
        b'{"text":"\\ud800"}',
        b'{"a":1,"a":"2"}',
    ],
    ids=ascii,
)
def test_values_that_are_deep_large_or_odd(raw: bytes) -> None:
    offer(raw)
