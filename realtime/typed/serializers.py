"""Serializers of Django REST framework. Loaded where a site declares one.

A serializer takes what it takes in a view: "5" for a number, too, and what it does not know it
ignores. Its validators may query the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.schemas.openapi import AutoSchema

from realtime import payload
from realtime.hooks.site_values import json_form
from realtime.payload import Payload
from realtime.typed.contract import REFERENCE, Adapter, Mismatch, Schema


class SerializerAdapter:
    """Adapter of a serializer class. Its values are the validated data."""

    may_query = True

    def __init__(self, serializer: type[Any]) -> None:
        """
        Raises:
            TypeError: it is not the class of a serializer with fields.
        """
        if not issubclass(serializer, serializers.Serializer):
            raise TypeError(f"{serializer.__name__} is not a Serializer")
        self.name = serializer.__name__
        self._serializer = serializer

    def decode(self, data: bytes) -> Any:
        try:
            value = msgspec.json.decode(data)
            return self._serializer().run_validation(value)
        except ValidationError as error:
            message, path = _first(error.detail, "$")
            raise Mismatch(f"{message} - at `{path}`") from None
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Mismatch(str(error)) from None

    def encode(self, value: Any) -> Payload:
        if not isinstance(value, serializers.BaseSerializer):
            value = self._serializer(instance=value)
        return payload.from_object(value.data, json_form)

    def schema(self) -> tuple[Schema, dict[str, Schema]]:
        schema = _json_schema(AutoSchema().map_serializer(self._serializer()))
        return {"$ref": REFERENCE.format(name=self.name)}, {self.name: schema}

    def members(self) -> list[Adapter[Any]]:
        return [self]


def _first(detail: Any, path: str) -> tuple[str, str]:
    """Return the first message of the errors of a serializer, and its path."""
    if isinstance(detail, Mapping):
        name, inner = next(iter(detail.items()))
        if name == "non_field_errors":
            return _first(inner, path)
        return _first(inner, f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}")
    if isinstance(detail, list):
        # of a list field: one entry for each item, {} for those that are right
        for index, inner in enumerate(detail):
            if isinstance(inner, Mapping):
                if inner:
                    return _first(inner, f"{path}[{index}]")
            else:
                return str(inner), path
        return "invalid", path
    return str(detail), path


def _json_schema(schema: Any) -> Any:
    """Return a schema of OpenAPI 3.0 as JSON Schema."""
    if isinstance(schema, list):
        return [_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema if isinstance(schema, str | int | float | bool | None) else str(schema)
    may_be_null = schema.get("nullable") is True  # and not the field of this name
    result = {
        key: _json_schema(each)
        for key, each in schema.items()
        if not (key == "nullable" and may_be_null)
    }
    return {"anyOf": [result, {"type": "null"}]} if may_be_null else result
