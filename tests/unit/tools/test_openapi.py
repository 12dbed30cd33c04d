"""The OpenAPI document of the HTTP API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

import realtime
from realtime.cluster.member import Member
from realtime.errors import Error
from realtime.server_api import methods, methods_v2
from realtime.serving import serving
from realtime.testing import TestService
from realtime.tools import openapi

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


SCHEMAS = DOCUMENT["components"]["schemas"]


def body(path: str) -> Any:
    """The schema of the body of a request."""
    return DOCUMENT["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]


def at(reference: Any) -> Any:
    return SCHEMAS[reference["$ref"].rpartition("/")[2]]


def commands() -> list[Any]:
    """The schemas of the commands of `POST /api`."""
    return [at(each) for each in body("/rt")["oneOf"]]


def test_every_method_of_both_dialects_is_there() -> None:
    assert set(DOCUMENT["paths"]) == {"/rt", *(f"/rt/{name}" for name in methods_v2.NAMES)}
    names = [each["properties"]["method"]["const"] for each in commands()]
    assert names == [row.name for row in methods.METHODS]
    assert set(SCHEMAS["BatchCommand"]["properties"]) == set(methods_v2.METHODS)
    assert set(SCHEMAS["BatchReply"]["properties"]) == {*methods_v2.METHODS, "error"}


PARAMS: dict[str, Any] = {
    "channel": "kept:a",
    "key": "k",
    "channels": ["kept:a"],
    "user": "17",
    "method": "m",
    "data": 1,
    "expire_at": int(time.time()) + 3600,
}
"""A value for each param that some method needs."""


def needed() -> Iterator[tuple[str, str, list[str]]]:
    """Yield each dialect and method, with the params that it needs."""
    for name in methods_v2.METHODS:
        schema = at(body(f"/rt/{name}"))
        yield "method", name, schema["required"] + schema.get("then", {}).get("required", [])
    for command in commands():
        if "params" in command["properties"]:
            name = command["properties"]["method"]["const"]
            yield "command", name, at(command["properties"]["params"])["required"]


def run(dialect: str, name: str, params: dict[str, Any]) -> int:
    """Run a method. Return the code of the error, or 0."""

    def in_service(member: Member) -> Any:
        encoded = json.dumps(params).encode()
        if dialect == "command":
            return methods.run(member, methods.METHOD_NUMBERS[name], encoded)
        return methods_v2.run(member, name, encoded)

    try:
        serving.call(in_service)
    except Error as error:
        return error.code
    return 0


@pytest.mark.parametrize(("dialect", "name", "names"), list(needed()), ids=str)
def test_params_that_a_method_needs_are_required_and_no_others(
    settings: Any, dialect: str, name: str, names: list[str]
) -> None:
    namespace = {"name": "kept", "presence": True, "history_size": 5, "history_lifetime": 60}
    maps = {"name": "map", "map": "recoverable"}
    settings.REALTIME = {"namespaces": [namespace, maps]}
    params = {each: PARAMS[each] for each in names}
    if name.startswith("map_"):
        params["channel"] = "map:a"

    with TestService():
        assert run(dialect, name, params) == (104 if name == "rpc" else 0)
        for each in names:
            rest = {key: value for key, value in params.items() if key != each}
            assert run(dialect, name, rest) == 107, each


def test_data_may_be_given_in_base64() -> None:
    for schema in (SCHEMAS["Publish"], SCHEMAS["Broadcast"]):
        assert schema["if"] == {"not": {"required": ["b64data"]}}
        assert schema["then"] == {"required": ["data"]}


def test_no_field_is_nullable_or_untyped() -> None:
    """Only JSON values of the site have any type."""
    free = {"data", "info", "params", "conn_info", "chan_info"}
    for title, schema in SCHEMAS.items():
        for name, each in schema.get("properties", {}).items():
            kinds = each.keys() & {"type", "$ref", "anyOf"}
            assert kinds or name in free, (title, name)
            assert {"type": "null"} not in each.get("anyOf", []), (title, name)
            assert "x-needed" not in each


def test_references_lead_somewhere() -> None:
    found = set(references(DOCUMENT))

    assert found
    for reference in found:
        prefix, _, name = reference.rpartition("/")
        assert prefix == "#/components/schemas"
        assert name in DOCUMENT["components"]["schemas"]
