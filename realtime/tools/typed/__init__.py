"""schema, types: the typed channels of the site as an AsyncAPI document, and as TypeScript.

components  the JSON Schemas of all declarations, with one name for each
asyncapi    the document
typescript  the types for pages; page.d.ts is what all sites have of them
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from realtime.config import sources
from realtime.tools.base import CommandResult, Options, SubCommand
from realtime.tools.typed import asyncapi, typescript
from realtime.typed.declarations import Declaration, declarations

_NOTHING = "No module realtime.py of the site declares a typed channel."


def _add_schema(parser: CommandParser) -> None:
    parser.add_argument(
        "--url", default="ws://localhost:8000", help="where clients connect: ws:// or wss://"
    )
    parser.add_argument("--title", default="Channels", help="title of the document")
    parser.add_argument("--api-version", default="1.0.0", help="version of the document")


def _schema(options: Options) -> CommandResult:
    address = urlsplit(options["url"])
    if address.scheme not in ("ws", "wss") or not address.netloc:
        raise CommandError("--url must be the address of a WebSocket, such as wss://example.com.")
    document = asyncapi.document(
        _checked(),
        sources.current(),
        url=options["url"],
        title=options["title"],
        version=options["api_version"],
        session_cookie=settings.SESSION_COOKIE_NAME,
    )
    text = msgspec.json.format(msgspec.json.encode(document)).decode()
    return CommandResult(text, document, warning="" if declarations.all else _NOTHING)


def _add_types(parser: CommandParser) -> None:
    parser.add_argument(
        "--module", default="realtime", help="the name under which pages import client.js"
    )


def _types(options: Options) -> CommandResult:
    text = typescript.declarations_of(_checked(), options["module"])
    warning = "" if declarations.all else _NOTHING
    return CommandResult(text.removesuffix("\n"), {"types": text}, warning=warning)


def _checked() -> list[Declaration]:
    """Return the declarations of the site.

    Raises:
        CommandError: one has a mistake.
    """
    if problems := declarations.problems():
        raise CommandError(problems[0])
    return declarations.all


SUB_COMMANDS = (
    SubCommand("schema", "Print the typed channels as an AsyncAPI document.", _add_schema, _schema),
    SubCommand("types", "Print the typed channels as TypeScript.", _add_types, _types),
)
