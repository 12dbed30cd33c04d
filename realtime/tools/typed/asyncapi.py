"""The typed channels of a site as an AsyncAPI 3.0 document.

It describes the site: it sends what pages receive, and receives what pages publish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from realtime.config.options import Config
from realtime.tools.typed.components import Components, name_in
from realtime.typed.contract import Adapter, Schema
from realtime.typed.declarations import Declaration

_PARAMETER = re.compile(r"\{(\w+)\}")

TOKEN: Schema = {
    "type": "apiKey",
    "in": "user",
    "description": "A connection token, in the field token of the connect command.",
}
SUBSCRIPTION_TOKEN: Schema = {
    "type": "apiKey",
    "in": "user",
    "description": "A subscription token, in the field token of the subscribe command.",
}


def document(
    declarations: Iterable[Declaration],
    config: Config,
    *,
    url: str,
    title: str,
    version: str,
    session_cookie: str,
) -> Schema:
    """Return the document.

    Args:
        declarations: those of the site.
        config: the options in force.
        url: where clients connect: scheme, host and path; without a path, that of the options.
        title: of the document.
        version: of the document.
        session_cookie: the name of the cookie of login sessions.

    Raises:
        TypeError: no adapter knows a type.
    """
    site = _Declared(config.channel_private_prefix)
    for declaration in declarations:
        site.add(declaration)
    schemes = {"token": TOKEN, "subscriptionToken": SUBSCRIPTION_TOKEN}
    ways = ["token"]
    if config.session_authentication:
        schemes["session"] = {"type": "httpApiKey", "in": "cookie", "name": session_cookie}
        ways.append("session")
    address = urlsplit(url)
    server = {
        "host": address.netloc,
        "pathname": address.path or config.websocket_handler_prefix,
        "protocol": address.scheme,
        "security": [_scheme(way) for way in ways],
    }
    schemas = {name: draft_7(schema) for name, schema in site.components.schemas.items()}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": title, "version": version},
        "defaultContentType": "application/json",
        "servers": {"site": server},
        "channels": site.channels,
        "operations": site.operations,
        "components": {
            "messages": site.messages,
            "schemas": schemas,
            "securitySchemes": schemes,
        },
    }


class _Declared:
    """What the declarations of a site add to the document."""

    def __init__(self, private_prefix: str) -> None:
        self._private_prefix = private_prefix
        self.components = Components()
        self.messages: dict[str, Schema] = {}
        self.channels: dict[str, Schema] = {}
        self.operations: dict[str, Schema] = {}

    def add(self, declaration: Declaration) -> None:
        text = declaration.pattern.text
        key = _unused(re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "channel", self.channels)
        address = address_of(text)
        channel: Schema = {"address": address, "messages": {}}
        if names := _PARAMETER.findall(address):
            channel["parameters"] = {name: {} for name in names}
        self.channels[key] = channel
        for action, adapter in (("send", declaration.received), ("receive", declaration.accepts)):
            if adapter is None:
                continue
            messages = [self._message(member) for member in adapter.members()]
            for name in messages:
                channel["messages"][name] = {"$ref": f"#/components/messages/{name}"}
            operation: Schema = {
                "action": action,
                "channel": {"$ref": f"#/channels/{key}"},
                "messages": [{"$ref": f"#/channels/{key}/messages/{name}"} for name in messages],
            }
            if self._private_prefix and text.startswith(self._private_prefix):
                operation["security"] = [_scheme("subscriptionToken")]
            self.operations[f"{action}_{key}"] = operation

    def _message(self, adapter: Adapter[Any]) -> str:
        """Add the message of a type, and return its name."""
        schema = draft_7(self.components.add(adapter))
        name = name_in(schema) or re.sub(r"\W+", "_", adapter.name, flags=re.ASCII).strip("_")
        message = {"name": name, "payload": schema}
        for key, known in self.messages.items():
            if known == message:
                return key
        key = _unused(name or "message", self.messages)
        self.messages[key] = message
        return key


def address_of(pattern: str) -> str:
    """Return a pattern with a parameter in place of each star."""
    names = set(_PARAMETER.findall(pattern))

    def parameter(_: re.Match[str]) -> str:
        name = _unused("rest", names)
        names.add(name)
        return f"{{{name}}}"

    return re.sub(r"\*+", parameter, pattern)


def draft_7(schema: Any) -> Any:
    """Return a JSON Schema in the words of draft 7, which AsyncAPI has."""
    if isinstance(schema, list):
        return [draft_7(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: draft_7(each) for key, each in schema.items()}
    first = schema.get("prefixItems")
    if isinstance(first, list):
        del result["prefixItems"]
        if "items" in schema:
            result["additionalItems"] = result["items"]
        result["items"] = draft_7(first)
    return result


def _scheme(name: str) -> Schema:
    return {"$ref": f"#/components/securitySchemes/{name}"}


def _unused(name: str, used: Iterable[str]) -> str:
    """Return a name, with a number if it is used."""
    taken, unused, number = set(used), name, 1
    while unused in taken:
        number += 1
        unused = f"{name}_{number}"
    return unused
