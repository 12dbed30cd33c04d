"""The HTTP API as an OpenAPI document, made from the tables of methods and the shapes of params."""

from __future__ import annotations

from typing import Any

import msgspec

from realtime.server_api import methods, methods_v2, params_v2

Schema = dict[str, Any]

_ERROR: Schema = {
    "type": "object",
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
    "required": ["code", "message"],
}
_REFERENCE = "#/components/schemas/{name}"


def document(version: str, path: str = "/api") -> Schema:
    """Return the document.

    Args:
        version: of this package.
        path: the path of `realtime.api.urls` in the site.
    """
    rows = methods_v2.METHODS
    shapes = [row.shape for row in rows.values()] + [params_v2.Batch]
    # two methods may have one shape
    unique = list(dict.fromkeys(shapes))
    found, components = msgspec.json.schema_components(unique, ref_template=_REFERENCE)
    schema_of = dict(zip(unique, found, strict=True))
    paths = {f"{path}/{name}": _method(name, schema_of[row.shape]) for name, row in rows.items()}
    paths[f"{path}/{methods_v2.BATCH}"] = _method(methods_v2.BATCH, schema_of[params_v2.Batch])
    paths[path] = _commands()
    return {
        "openapi": "3.1.0",
        "info": {"title": "Real-time server API", "version": version},
        "security": [{"key": []}, {"authorization": []}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "authorization": {"type": "apiKey", "in": "header", "name": "Authorization"},
            },
        },
    }


def _method(name: str, schema: Schema) -> Schema:
    answer: Schema = {"result": {"type": "object"}, "error": {"$ref": _reference("Error")}}
    if name == methods_v2.BATCH:
        answer = {"replies": {"type": "array", "items": {"type": "object"}}}
    return _post(name, schema, {"type": "object", "properties": answer}, "application/json")


def _commands() -> Schema:
    command: Schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 0},
            "method": {"enum": [row.name for row in methods.METHODS]},
            "params": {"type": "object"},
        },
        "required": ["method"],
    }
    reply: Schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "result": {"type": "object"},
            "error": {"$ref": _reference("Error")},
        },
    }
    return _post("commands", command, reply, "application/json")


def _post(name: str, body: Schema, answer: Schema, kind: str) -> Schema:
    statuses = {"400": "malformed", "401": "wrong key", "413": "too large", "503": "not serving"}
    responses: Schema = {status: {"description": text} for status, text in statuses.items()}
    responses["200"] = {"description": "the answer", "content": {kind: {"schema": answer}}}
    return {
        "post": {
            "operationId": name,
            "requestBody": {"required": True, "content": {kind: {"schema": body}}},
            "responses": responses,
        }
    }


def _reference(name: str) -> str:
    return _REFERENCE.format(name=name)
