"""openapi: the HTTP API as an OpenAPI document, made from the tables of methods and their structs.

A request leaves out a field that is absent, where the service also takes null. So no field is
nullable, and clients that are generated from the document have plain types.
"""

from __future__ import annotations

from typing import Any

import msgspec
from django.core.management.base import CommandParser

from realtime import __version__
from realtime.server_api import http_v2, methods, methods_v2, params_v2, results
from realtime.server_api.methods import NoParams
from realtime.server_api.methods_v2 import Row
from realtime.tools.base import CommandResult, Options, SubCommand

Schema = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_UINT32: Schema = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_WITH_DATA = (params_v2.Publish, params_v2.Broadcast, params_v2.MapPublish)
_DATA_OR_BASE64: Schema = {"if": {"not": {"required": ["b64data"]}}, "then": {"required": ["data"]}}

_JSON = "application/json"
_TEXT: Schema = {"text/plain": {"schema": {"type": "string"}}}
_STATUSES: dict[int, tuple[str, Schema]] = {
    400: ("malformed", _TEXT),
    401: ("wrong key", {}),
    404: ("the API is off", {}),
    405: ("not a POST", {}),
    413: ("too large", {}),
    503: ("not serving", _TEXT),  # or no body
}
"""What they mean, and their content: a line of text, or none."""
_ERROR_STATUSES = sorted({*http_v2.STATUSES.values(), 503})
"""Those of an error where the error mode is `transport`."""
_ERROR_MODE: Schema = {
    "name": "X-Centrifugo-Error-Mode",
    "in": "header",
    "description": "`transport`: an error is the whole body, and has a status of its own",
    "schema": {"$ref": _REFERENCE.format(name="ErrorMode")},
}


def document(version: str, path: str = "/api") -> Schema:
    """Return the document.

    Args:
        version: of this package.
        path: the path of `realtime.api.urls` in the site.
    """
    schemas = _components()
    paths = {f"{path}/{name}": _method(name) for name in methods_v2.METHODS}
    paths[f"{path}/{methods_v2.BATCH}"] = _batch()
    paths[path] = _commands(schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Real-time server API", "version": version},
        "security": [{"key": []}, {"authorization": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "authorization": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "the word `apikey`, a space, and the key",
                },
            },
        },
    }


def _components() -> dict[str, Schema]:
    """Return the schemas of all structs, and of the commands and replies that name them."""
    rows: list[Any] = [*methods_v2.METHODS.values(), *methods.METHODS]
    structs = [each for row in rows for each in (row.shape, row.result) if each is not NoParams]
    # two methods may have one
    unique = list(dict.fromkeys([*structs, params_v2.Batch, results.ErrorBody]))
    _, found = msgspec.json.schema_components(unique, ref_template=_REFERENCE)
    schemas: dict[str, Schema] = {name: _exact(schema) for name, schema in found.items()}
    for each in _WITH_DATA:
        schemas[each.__name__] |= _DATA_OR_BASE64
    one = {"minProperties": 1, "maxProperties": 1}
    shapes = {row.name: _reference(row.shape) for row in methods_v2.METHODS.values()}
    answers = {row.name: _reference(row.result) for row in methods_v2.METHODS.values()}
    answers["error"] = _reference(results.ErrorBody)
    schemas["ErrorMode"] = {"type": "string", "enum": ["transport"]}
    schemas["BatchCommand"] = _object(shapes) | {"additionalProperties": False} | one
    command = {"$ref": _REFERENCE.format(name="BatchCommand")}
    schemas["Batch"]["properties"]["commands"]["items"] = command
    schemas["BatchReply"] = _object(answers) | one
    for row in methods.METHODS:
        schemas[_command_name(row.name)] = _command(row)
    return schemas


def _exact(schema: Schema) -> Schema:
    """Return the schema of a struct with the fields that are needed, and without null."""
    properties: dict[str, Schema] = schema.get("properties", {})
    needed = [name for name, each in properties.items() if each.pop("x-needed", False)]
    for name, each in properties.items():
        kinds = [kind for kind in each.get("anyOf", ()) if kind != {"type": "null"}]
        if len(kinds) == 1:
            rest = {key: value for key, value in each.items() if key not in ("anyOf", "default")}
            properties[name] = rest | kinds[0]
    required = [*schema.get("required", ()), *needed]
    return schema | {"properties": properties, "required": required}


def _method(name: str) -> Schema:
    row = methods_v2.METHODS[name]
    answer = {"result": _reference(row.result), "error": _reference(results.ErrorBody)}
    reply = _object(answer) | {"minProperties": 1, "maxProperties": 1}
    return _post(name, _reference(row.shape), reply, _ERROR_MODE)


def _batch() -> Schema:
    replies = {"type": "array", "items": {"$ref": _REFERENCE.format(name="BatchReply")}}
    # a batch that is too long is refused as a whole
    answer = _object({"replies": replies, "error": _reference(results.ErrorBody)})
    return _post(methods_v2.BATCH, _reference(params_v2.Batch), answer, _ERROR_MODE)


def _commands(schemas: dict[str, Schema]) -> Schema:
    """Return the path for one command; the service takes several, one after the other."""
    names = [_command_name(row.name) for row in methods.METHODS]
    found = [
        schemas[name] for name in dict.fromkeys(row.result.__name__ for row in methods.METHODS)
    ]
    # a reader that takes the first that fits finds the result: Sent fits all, but has no fields
    found.sort(key=lambda each: (len(each["required"]), len(each["properties"])), reverse=True)
    ordered = [{"$ref": _REFERENCE.format(name=each["title"])} for each in found]
    reply = _object(
        {
            "id": _UINT32,
            "result": {"anyOf": ordered},
            "error": _reference(results.ErrorBody),
        }
    )
    body = {"oneOf": [{"$ref": _REFERENCE.format(name=name)} for name in names]}
    path = _post("command", body, reply)
    path["post"]["security"] = [{"authorization": []}]  # it reads no other header
    return path


def _command(row: Row[Any, Any]) -> Schema:
    fields: Schema = {"method": {"type": "string", "const": row.name}, "id": _UINT32}
    if row.shape is NoParams:
        return _object(fields, "method")
    return _object(fields | {"params": _reference(row.shape)}, "method", "params")


def _command_name(method: str) -> str:
    return "".join(part.capitalize() for part in method.split("_")) + "Command"


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _post(name: str, body: Schema, answer: Schema, *parameters: Schema) -> Schema:
    responses: dict[str, Schema] = {
        str(status): {"description": text, "content": dict(content)}
        for status, (text, content) in _STATUSES.items()
    }
    for status in _ERROR_STATUSES if parameters else ():
        # readers take the first content that they know, and a text may be none
        response = responses.setdefault(str(status), {"description": "an error", "content": {}})
        response["content"][_JSON] = {"schema": _reference(results.ErrorBody)}
    responses["200"] = {"description": "the answer", "content": {_JSON: {"schema": answer}}}
    return {
        "post": {
            "operationId": name,
            "parameters": list(parameters),
            "requestBody": {"required": True, "content": {_JSON: {"schema": body}}},
            "responses": responses,
        }
    }


def _reference(struct: type) -> Schema:
    return {"$ref": _REFERENCE.format(name=struct.__name__)}


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--path", default="/api", help="path of the HTTP API in the site")


def _run(options: Options) -> CommandResult:
    found = document(__version__, options["path"])
    return CommandResult(msgspec.json.format(msgspec.json.encode(found)).decode(), found)


SUB_COMMANDS = (
    SubCommand("openapi", "Print the HTTP API as an OpenAPI document.", _add_arguments, _run),
)
