"""Adapters: from a type to what reads and writes its values.

msgspec knows Structs, dataclasses, TypedDicts, named tuples, enums and the types of the standard
library. Models of pydantic and serializers of Django REST framework have adapters of their own,
which are loaded where a site uses them. A union of types that no library takes together is tried
one type after another.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec

from realtime import payload
from realtime.hooks.site_values import json_form
from realtime.payload import Payload
from realtime.typed.contract import REFERENCE, Adapter, Mismatch, Schema
from realtime.typed.formats import add_formats

T = TypeVar("T")


def adapter_of(declared: Any) -> Adapter[Any]:
    """Return the adapter of a type.

    Args:
        declared: the type, as `channel` takes it.

    Raises:
        TypeError: no adapter knows it.
    """
    members = members_of(declared)
    foreign = [_foreign(member) for member in members]
    if len(members) == 1 and foreign[0] is not None:
        return foreign[0]
    if not any(foreign):
        try:
            return MsgspecAdapter(declared)
        except TypeError:  # it could not tell the types of a union apart
            if len(members) == 1:
                raise
    return Either([adapter_of(member) for member in members])


def members_of(declared: Any) -> list[Any]:
    """Return the types of a union; of another type, the type itself."""
    if get_origin(declared) in (Union, types.UnionType):
        return list(get_args(declared))
    return [declared]


def _foreign(declared: Any) -> Adapter[Any] | None:
    """Return the adapter of a class that belongs to another library; None for other types."""
    if not isinstance(declared, type):
        return None
    # both are known by what they have: neither library needs to be installed
    if hasattr(declared, "__pydantic_validator__"):
        from realtime.typed.models import ModelAdapter

        return ModelAdapter(declared)
    if hasattr(declared, "run_validation"):
        from realtime.typed.serializers import SerializerAdapter

        return SerializerAdapter(declared)
    return None


def name_of(declared: Any) -> str:
    """Return the name of a type."""
    return str(getattr(declared, "__name__", declared))


class MsgspecAdapter(Generic[T]):
    """Adapter of what msgspec knows."""

    may_query = False

    def __init__(self, declared: Any) -> None:
        """
        Raises:
            TypeError: msgspec does not know the type, or a type in it.
        """
        self.name = name_of(declared)
        self._type = declared
        self._decode = msgspec.json.Decoder(declared).decode
        self._read_tag = _tag_reader(declared)
        self.schema()  # of a class that msgspec does not know it makes a decoder, and no schema

    def decode(self, data: bytes) -> T:
        try:
            value: T = self._decode(data)
            if self._read_tag is not None:
                self._read_tag(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Mismatch(str(error)) from None
        return value

    def encode(self, value: T) -> Payload:
        return payload.from_object(value, json_form)

    def schema(self) -> tuple[Schema, dict[str, Schema]]:
        [schema], components = msgspec.json.schema_components([self._type], ref_template=REFERENCE)
        add_formats(self._type, schema, components)
        return schema, components

    def members(self) -> list[Adapter[Any]]:
        members = members_of(self._type)
        return [self] if len(members) == 1 else [MsgspecAdapter(member) for member in members]


def _tag_reader(declared: Any) -> Callable[[bytes], object] | None:
    """Return what raises `msgspec.MsgspecError` if JSON lacks the tag of a Struct.

    Within a union msgspec asks for the tag, of one Struct it does not, and then reads data of
    another type as a Struct whose fields all have defaults. None: there is no tag to ask for.
    """
    config = getattr(get_origin(declared) or declared, "__struct_config__", None)
    if config is None or config.tag is None or config.array_like:  # an array has it in its place
        return None
    # the value of the tag was checked with the other fields
    tagged = msgspec.defstruct("Tagged", [("tag", object)], rename={"tag": config.tag_field})
    return msgspec.json.Decoder(tagged).decode


class Either:
    """Adapter of a union whose types are tried in their order."""

    def __init__(self, adapters: list[Adapter[Any]]) -> None:
        self._adapters = adapters
        self.name = " | ".join(adapter.name for adapter in adapters)
        self.may_query = any(adapter.may_query for adapter in adapters)

    def decode(self, data: bytes) -> Any:
        reasons: list[str] = []
        for adapter in self._adapters:
            try:
                return adapter.decode(data)
            except Mismatch as mismatch:
                reasons.append(f"{adapter.name}: {mismatch}")
        raise Mismatch("; ".join(reasons))

    def encode(self, value: Any) -> Payload:
        first: Payload | None = None
        for adapter in self._adapters:
            try:
                encoded = adapter.encode(value)
                first = first or encoded
                adapter.decode(encoded.json)
            except (TypeError, Mismatch):
                continue
            return encoded
        if first is None:
            raise TypeError(f"a value of {self.name} expected, not {type(value).__name__}")
        return first

    def schema(self) -> tuple[Schema, dict[str, Schema]]:
        schemas: list[Schema] = []
        components: dict[str, Schema] = {}
        for adapter in self._adapters:
            schema, named = adapter.schema()
            schemas.append(schema)
            components |= named
        return {"anyOf": schemas}, components

    def members(self) -> list[Adapter[Any]]:
        return [member for adapter in self._adapters for member in adapter.members()]
