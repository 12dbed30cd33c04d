"""Types of JSON Schemas in TypeScript. tests/live/client_module/test_typed.py compiles them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.tools.typed.typescript import name_type, type_of
from realtime.typed.adapters import adapter_of
from tests.unit.typed.schemas import TYPES


@pytest.mark.parametrize(("declared", "good", "wrong"), TYPES)
def test_values_come_back_and_others_do_not(declared: Any, good: list[Any], wrong: Any) -> None:
    adapter = adapter_of(declared)
    for value in good:
        assert adapter.decode(adapter.encode(value).json) == value
    with pytest.raises(ValueError, match=r"."):
        adapter.decode(json.dumps(wrong).encode())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, "unknown"),
        (False, "never"),
        ({}, "unknown"),
        ({"not": {"type": "string"}}, "unknown"),
        ({"type": "mystery"}, "unknown"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        (
            {"allOf": [{"$ref": "#/components/schemas/A"}, {"type": "object"}]},
            "A & (Record<string, unknown>)",
        ),
        ({"enum": []}, "never"),
        ({"enum": [{"a": 1}]}, "unknown"),
        ({"enum": [float("inf"), 1.5]}, "number | 1.5"),
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "items": False}, "[]"),
        ({"type": "array", "prefixItems": [{"type": "null"}]}, "[null?, ...unknown[]]"),
        ({"type": "object", "additionalProperties": False}, "Record<string, never>"),
        (
            {
                "type": "object",
                "properties": {"a-b": {"type": "null"}},
                "additionalProperties": {"type": "string"},
            },
            '{ "a-b"?: null; [name: string]: unknown; }',
        ),
    ],
)
def test_schemas_beyond_those_of_the_libraries_have_a_type(schema: Any, expected: str) -> None:
    assert type_of(schema) == expected


def test_name_of_a_pattern_is_text_around_its_names() -> None:
    assert name_type("news") == '"news"'
    assert name_type("a`$\\:{b}-*") == "`a\\`\\$\\\\:${string}-${string}`"
