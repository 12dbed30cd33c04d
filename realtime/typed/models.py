"""Models and dataclasses of pydantic. Loaded where a site declares one."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from realtime import payload
from realtime.payload import Payload
from realtime.typed.contract import REFERENCE, Adapter, Mismatch, Schema


class _Generator(GenerateJsonSchema):
    """Makes the schema of a model; of what has none, such as a function, a schema of everything."""

    ignored_warning_kinds: Any = frozenset({"skipped-choice", "non-serializable-default"})

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Schema:
        return {}


class ModelAdapter:
    """Adapter of a model. It is strict: "5" is not taken for 5, because subscribers get the "5"."""

    may_query = False

    def __init__(self, model: type[Any]) -> None:
        self.name = model.__name__
        self._model = model
        self._type: TypeAdapter[Any] = TypeAdapter(model)

    def decode(self, data: bytes) -> Any:
        try:
            return self._type.validate_json(data, strict=True)
        except ValidationError as error:
            # without what the client sent, and without links
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in first["loc"])
            raise Mismatch(f"{first['msg']} - at `${path}`") from None

    def encode(self, value: Any) -> Payload:
        if not isinstance(value, self._model):
            raise TypeError(f"a {self.name} expected, not {type(value).__name__}")
        try:
            text = self._type.dump_json(value, by_alias=True, warnings="error")
        except ValueError as error:  # of pydantic_core, for another type too
            raise TypeError(f"this has no JSON form: {error}") from None
        try:
            return payload.check(text)
        except ValueError as error:
            raise TypeError(f"this has no JSON form: {error}") from None

    def schema(self) -> tuple[Schema, dict[str, Schema]]:
        schema = self._type.json_schema(
            ref_template=REFERENCE.replace("{name}", "{model}"), schema_generator=_Generator
        )
        named: dict[str, Schema] = schema.pop("$defs", {})
        if "$ref" in schema:  # a model that names itself
            return schema, named
        name = self.name
        while name in named:  # another model in it has the same name
            name += "_"
        return {"$ref": REFERENCE.format(name=name)}, {**named, name: schema}

    def members(self) -> list[Adapter[Any]]:
        return [self]
