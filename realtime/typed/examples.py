"""An example of a type, made of its JSON Schema: something to start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realtime.typed.contract import REFERENCE, Schema

MAX_DEPTH = 8
"""Schemas within schemas. Below that a type that names itself ends."""

_PREFIX = REFERENCE.format(name="")

_TEXTS = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00",
    "duration": "PT1H",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uuid4": "00000000-0000-4000-8000-000000000000",
    "email": "name@example.com",
    "uri": "https://example.com/",
    "decimal": "1.5",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}


def example(schema: Any, named: Mapping[str, Schema], depth: int = 0) -> Any:
    """Return a value with all fields that an object must have, and the defaults of others.

    Args:
        schema: of the type.
        named: the schemas that it names.
        depth: of the schema in others.
    """
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if "$ref" in schema:
        return example(named.get(schema["$ref"].removeprefix(_PREFIX)), named, depth + 1)
    if enum := schema.get("enum"):
        return enum[0]
    for key in ("anyOf", "oneOf", "allOf"):
        if choices := schema.get(key):
            return example(choices[0], named, depth + 1)
    return _of_kind(schema, named, depth)


def _of_kind(schema: Schema, named: Mapping[str, Schema], depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        required = schema.get("required", ())
        return {
            name: example(each, named, depth + 1)
            for name, each in schema.get("properties", {}).items()
            if name in required or "default" in each
        }
    if kind == "array":
        if first := schema.get("prefixItems"):
            return [example(each, named, depth + 1) for each in first]
        return [example(schema.get("items"), named, depth + 1)] * schema.get("minItems", 0)
    if kind == "string":
        return _TEXTS.get(schema.get("format", ""), "text"[: schema.get("maxLength", 4)])
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    return False if kind == "boolean" else None
