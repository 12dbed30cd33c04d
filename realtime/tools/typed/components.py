"""The JSON Schemas of all declarations, with one name for each."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from realtime.typed.contract import REFERENCE, Adapter, Schema

_BEFORE_NAME = REFERENCE.format(name="")


class Components:
    """Schemas by name. Names are identifiers, and no two schemas have the same one."""

    def __init__(self, reserved: Collection[str] = ()) -> None:
        """`reserved`: names that no schema gets."""
        self._reserved = reserved
        self.schemas: dict[str, Schema] = {}
        self._chosen: dict[tuple[str, str], str] = {}
        """Name in a library, and the schema as text → name here."""

    def add(self, adapter: Adapter[Any]) -> Schema:
        """Add what the schema of a type names, and return the schema."""
        schema, named = adapter.schema()
        renamed = {name: self._choose(name, named) for name in named}
        for name, new in renamed.items():
            self.schemas.setdefault(new, _rename(named[name], renamed))
        result: Schema = _rename(schema, renamed)
        return result

    def _choose(self, name: str, named: Mapping[str, Schema]) -> str:
        text = json.dumps(_reached(name, named), sort_keys=True)
        if (name, text) not in self._chosen:
            base = re.sub(r"\W", "_", name, flags=re.ASCII)
            if not base or base[0].isdigit():
                base = f"_{base}"
            new, number = base, 1
            while new in self._reserved or new in self._chosen.values():
                number += 1
                new = f"{base}_{number}"
            self._chosen[name, text] = new
        return self._chosen[name, text]


def name_in(schema: Schema) -> str:
    """Return the name that a `$ref` schema points to; "" for any other schema."""
    reference = schema.get("$ref", "")
    return reference.removeprefix(_BEFORE_NAME) if isinstance(reference, str) else ""


def _reached(name: str, named: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return a schema, and those that it names, and so on."""
    reached: dict[str, Schema] = {}
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each in named and each not in reached:
            reached[each] = named[each]
            waiting.extend(_names(named[each]))
    return reached


def _names(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for each in schema for name in _names(each)]
    if not isinstance(schema, dict):
        return []
    own = [name_in(schema)] if "$ref" in schema else []
    return own + [name for each in schema.values() for name in _names(each)]


def _rename(schema: Any, renamed: Mapping[str, str]) -> Any:
    """Return a schema with the new names, and without hints which of several schemas it is."""
    if isinstance(schema, list):
        return [_rename(each, renamed) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: _rename(each, renamed)
        for key, each in schema.items()
        # the schemas of a union have their tags; the field of this name has a schema with a type
        if not (key == "discriminator" and "propertyName" in each)
    }
    if (name := name_in(schema)) in renamed:
        result["$ref"] = REFERENCE.format(name=renamed[name])
    return result
