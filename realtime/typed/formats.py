"""Formats of dates and times in the JSON Schemas of msgspec.

msgspec writes them only where a type says whether it has a time zone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from realtime.typed.contract import REFERENCE, Schema

_PREFIX = REFERENCE.format(name="")
_FORMATS = {inspect.DateTimeType: "date-time", inspect.TimeType: "time"}


def add_formats(declared: Any, schema: Schema, named: Mapping[str, Schema]) -> None:
    """Add to the schema of a type, and to those that it names, the formats that they lack."""
    _Walk(named).visit(inspect.type_info(declared), schema)


class _Walk:
    """A walk through a type and its schema, side by side."""

    def __init__(self, named: Mapping[str, Schema]) -> None:
        self._named = named
        self._seen: set[str] = set()

    def visit(self, info: Any, schema: Any) -> None:
        if not isinstance(schema, dict):
            return
        if isinstance(info, inspect.Metadata):
            info = info.type
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(_PREFIX)
            if name in self._seen:
                return
            self._seen.add(name)
            schema = self._named.get(name, {})
        if (form := _FORMATS.get(type(info))) and schema.get("type") == "string":
            schema.setdefault("format", form)
        elif isinstance(info, inspect.UnionType):
            self._visit_union(info, schema)
        elif isinstance(info, inspect.TupleType):
            for item, each in zip(info.item_types, schema.get("prefixItems", ()), strict=False):
                self.visit(item, each)
        elif isinstance(info, inspect.CollectionType):
            self.visit(info.item_type, schema.get("items"))
        elif isinstance(info, inspect.DictType):
            self.visit(info.value_type, schema.get("additionalProperties"))
        else:
            for field in getattr(info, "fields", ()):
                properties = schema.get("properties", {})
                self.visit(field.type, properties.get(field.encode_name))

    def _visit_union(self, info: inspect.UnionType, schema: Schema) -> None:
        # in another order than the types; a union has one type at most that is text
        for each in schema.get("anyOf", ()):
            if "anyOf" in each:  # the types with tags
                self._visit_union(info, each)
            for member in info.types:
                if _fits(member, each):
                    self.visit(member, each)


def _fits(info: Any, schema: Schema) -> bool:
    """Return whether a schema of a union is that of a type."""
    cls = getattr(info, "cls", None)
    if "$ref" in schema:
        return cls is not None and _is_name_of(schema["$ref"].removeprefix(_PREFIX), cls)
    return cls is None


def _is_name_of(name: str, cls: Any) -> bool:
    """Return whether a schema has the name that msgspec gives to a class."""
    own = cls.__name__
    if hasattr(cls, "__origin__"):  # a generic type: its arguments follow
        return name.startswith(f"{own}_")
    # the whole path where two classes have the same name
    path = re.sub(r"[^a-zA-Z0-9.\-_]", "_", f"{cls.__module__}.{cls.__qualname__}")
    return name in (own, path)
