"""The OpenAPI document of the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import realtime
from realtime.server_api import methods, methods_v2, openapi

DOCUMENT = json.loads(json.dumps(openapi.document(realtime.__version__, "/rt")))


def references(value: Any) -> Iterator[str]:
    """Every reference in the document."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def test_every_method_of_both_dialects_is_there() -> None:
    assert set(DOCUMENT["paths"]) == {"/rt", *(f"/rt/{name}" for name in methods_v2.NAMES)}
    body = DOCUMENT["paths"]["/rt"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["properties"]["method"]["enum"] == [row.name for row in methods.METHODS]


def test_params_are_those_that_the_service_decodes() -> None:
    publish = DOCUMENT["components"]["schemas"]["Publish"]["properties"]

    assert {"channel", "data", "tags", "idempotency_key", "skip_history"} <= set(publish)


def test_references_lead_somewhere() -> None:
    found = set(references(DOCUMENT))

    assert found
    for reference in found:
        prefix, _, name = reference.rpartition("/")
        assert prefix == "#/components/schemas"
        assert name in DOCUMENT["components"]["schemas"]
