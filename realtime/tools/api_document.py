"""openapi: the HTTP API of the service as an OpenAPI document."""

from __future__ import annotations

import msgspec
from django.core.management.base import CommandParser

from realtime import __version__
from realtime.server_api import openapi
from realtime.tools.base import CommandResult, Options, SubCommand


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--path", default="/api", help="path of the HTTP API in the site")


def _run(options: Options) -> CommandResult:
    document = openapi.document(__version__, options["path"])
    return CommandResult(msgspec.json.format(msgspec.json.encode(document)).decode(), document)


SUB_COMMANDS = (
    SubCommand("openapi", "Print the HTTP API as an OpenAPI document.", _add_arguments, _run),
)
