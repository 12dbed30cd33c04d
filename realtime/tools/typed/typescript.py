"""The typed channels of a site as TypeScript declarations, for pages that use `client.js`.

The emitter knows the part of JSON Schema that libraries of types write: objects, records, arrays,
tuples, enums, constants, unions, and names of other schemas. Everything else is `unknown`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from realtime.tools.typed.components import Components, name_in
from realtime.typed.contract import Adapter, Schema
from realtime.typed.declarations import Declaration

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_ONE = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(\[\])*")
_SIMPLE = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_UNKNOWN = "unknown"

_OF_THE_TEMPLATE = """
AsyncGenerator ChannelHandle Channels Client HandlerOptions HistoryOptions Omit Pattern Promise
Publication Received Record SubscribeContext Subscription SubscriptionEvents SubscriptionOptions
Symbol Typed TypedEvents TypedHandle TypedPublication TypedSubscription WaitOptions
"""
_OF_THE_LANGUAGE = """
any bigint boolean case catch const debugger default delete do enum export extends false function
implements instanceof interface let never new null number object package private protected public
static string super switch symbol this throw true typeof undefined unknown var void
"""
RESERVED = frozenset((_OF_THE_TEMPLATE + _OF_THE_LANGUAGE).split())
"""Names that the declarations need for themselves, and words of the language."""

_TEMPLATE = Path(__file__).with_name("page.d.ts")
_PLACE = "/* The types of the site stand here. */\n"
_MODULE = '"realtime"'


def declarations_of(declarations: Iterable[Declaration], module: str) -> str:
    """Return the declarations.

    Args:
        declarations: those of the site.
        module: the name under which pages import `client.js`.

    Raises:
        TypeError: no adapter knows a type.
    """
    components = Components(RESERVED)
    rows: list[str] = []
    for declaration in declarations:
        received = _union(components, declaration.received)
        accepts = declaration.accepts
        accepted = "never" if accepts is None else _union(components, accepts)
        rows.append(
            f"  {json.dumps(declaration.pattern.text)}: {{\n"
            f"    name: {name_type(declaration.pattern.text)};\n"
            f"    receives: {received};\n"
            f"    accepts: {accepted};\n"
            "  };\n"
        )
    types = [component(name, schema) for name, schema in components.schemas.items()]
    types.append(
        "/** Pattern → names of its channels, what subscribers get, what a page may publish. */\n"
        f"export interface Channels {{\n{''.join(rows)}}}\n"
    )
    before, _, after = _TEMPLATE.read_text().replace(_MODULE, json.dumps(module)).partition(_PLACE)
    return before + "\n".join(types) + after


def name_type(pattern: str) -> str:
    """Return the type of the names that a pattern matches."""
    parts = re.split(r"\{\w+\}|\*+", pattern)
    if len(parts) == 1:
        return json.dumps(pattern)
    return "`" + "${string}".join(re.sub(r"[`\\$]", r"\\\g<0>", part) for part in parts) + "`"


def component(name: str, schema: Schema) -> str:
    """Return the declaration of a named schema."""
    if schema.get("type") == "object" and schema.get("properties"):
        fields = "".join(f"  {field}\n" for field in _fields(schema))
        return f"export type {name} = {{\n{fields}}};\n"
    return f"export type {name} = {type_of(schema)};\n"


def type_of(schema: Any) -> str:
    """Return the type of the values that a schema allows."""
    if schema is False:
        return "never"
    if not isinstance(schema, dict):
        return _UNKNOWN
    if name := name_in(schema):
        return name
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return _either(map(_literal, schema["enum"]))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _either(map(type_of, schema[key]))
    if "allOf" in schema:
        return " & ".join(_one(type_of(each)) for each in schema["allOf"]) or _UNKNOWN
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either(type_of({**schema, "type": each}) for each in kind)
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema)
    return _SIMPLE.get(kind, _UNKNOWN) if isinstance(kind, str) else _UNKNOWN


def _union(components: Components, adapter: Adapter[Any]) -> str:
    return _either(type_of(components.add(member)) for member in adapter.members())


def _either(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types)) or "never"


def _literal(value: object) -> str:
    """Return the type of one value of an enum, or of a constant."""
    if isinstance(value, float) and not math.isfinite(value):
        return "number"
    plain = isinstance(value, str | int | float | bool | None)
    return json.dumps(value) if plain else _UNKNOWN


def _array(schema: Schema) -> str:
    first = schema.get("prefixItems")
    rest = schema.get("items", True)
    if not first:
        return "[]" if rest is False else f"{_one(type_of(rest))}[]"
    least = schema.get("minItems", 0)
    types = list(map(type_of, first))
    parts = [each if index < least else f"{_one(each)}?" for index, each in enumerate(types)]
    if rest is not False and schema.get("maxItems") != len(first):
        parts.append(f"...{_one(type_of(rest))}[]")
    return f"[{', '.join(parts)}]"


def _object(schema: Schema) -> str:
    if schema.get("properties"):
        return f"{{ {' '.join(_fields(schema))} }}"
    others = schema.get("additionalProperties", True)
    if isinstance(others, dict):  # may name the type itself, and an alias for Record must not
        return f"{{ [name: string]: {type_of(others)} }}"
    return f"Record<string, {'never' if others is False else _UNKNOWN}>"


def _fields(schema: Schema) -> list[str]:
    """Return the fields of an object with properties."""
    properties: Mapping[str, Any] = schema["properties"]
    required = schema.get("required", ())
    fields = [
        f"{name if _IDENTIFIER.fullmatch(name) else json.dumps(name)}"
        f"{'' if name in required else '?'}: {type_of(each)};"
        for name, each in properties.items()
    ]
    # their type would have to be that of the named ones, too
    if isinstance(schema.get("additionalProperties"), dict):
        fields.append("[name: string]: unknown;")
    return fields


def _one(text: str) -> str:
    """Return a type so that it is one in front of brackets, and in an intersection."""
    return text if _ONE.fullmatch(text) else f"({text})"
