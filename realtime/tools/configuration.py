"""checkconfig and genconfig: mistakes in the options, and options to start with."""

from __future__ import annotations

import json
import secrets
from typing import Any

from django.core import checks
from django.core.management.base import CommandParser

from realtime.checks import TAG
from realtime.config import sources
from realtime.config.nested import FileOption
from realtime.tools.base import (
    CommandResult,
    Options,
    SubCommand,
    add_nothing,
    count,
    escape_for_terminal,
)

SECRET_BYTES = 32
"""Bytes of entropy, as many as HMAC SHA-256 uses (RFC 7518, 3.2)."""

Message = checks.CheckMessage


# checkconfig


def messages_of_checks() -> list[Message]:
    """Return the messages of the service's system checks, without those that the site silenced."""
    return [message for message in checks.run_checks(tags=[TAG]) if not message.is_silenced()]


def _checkconfig(options: Options) -> CommandResult:
    messages = messages_of_checks()
    errors = [message for message in messages if message.is_serious()]
    value: dict[str, Any] = {
        "ok": not errors,
        "messages": [
            {
                "id": message.id,
                "level": _level(message),
                "message": message.msg,
                "hint": message.hint,
            }
            for message in messages
        ],
    }
    file_options = sources.gather().file_options
    if file_options:
        value["file_options"] = [each._asdict() for each in file_options]
    lines = [*map(_describe_file_option, file_options), *map(_describe, messages)]
    text = "\n".join(lines or ["The configuration is valid."])
    failure = f"The configuration has {count(len(errors), 'mistake')}." if errors else ""
    return CommandResult(text, value, failure)


def _describe_file_option(option: FileOption) -> str:
    words = {"option": "is", "unused": "has no effect:", "unsupported": "is not supported:"}
    name, meaning = escape_for_terminal(option.name), escape_for_terminal(option.meaning)
    return f"{name} {words.get(option.kind, 'is unknown.')} {meaning}"


def _level(message: Message) -> str:
    return "error" if message.is_serious() else "warning"


def _describe(message: Message) -> str:
    lines = [f"{_level(message)} {message.id}: {message.msg}"]
    if message.hint:
        lines.append(f"    {message.hint}")
    return "\n".join(lines)


# genconfig


def _add_genconfig(parser: CommandParser) -> None:
    parser.add_argument(
        "--format",
        choices=("python", "json"),
        default="python",
        help="python: for settings.py; json: a config.json (default: python)",
    )


def _genconfig(options: Options) -> CommandResult:
    config: dict[str, Any] = {
        "token_hmac_secret_key": secrets.token_urlsafe(SECRET_BYTES),
        "api_key": secrets.token_urlsafe(SECRET_BYTES),
        "v3_use_offset": True,
        "namespaces": [
            {
                "name": "chat",
                "presence": True,
                "join_leave": True,
                "history_size": 100,
                "history_lifetime": 300,
                "history_recover": True,
            }
        ],
    }
    if options["format"] == "json":
        return CommandResult(json.dumps(config, indent=4), config)
    return CommandResult(_as_python(config), config)


def _as_python(config: dict[str, Any]) -> str:
    lines = [
        "# The real-time service; docs/options.md lists every option. Keep secrets out of the",
        "# repository: SERVICE_TOKEN_HMAC_SECRET_KEY and SERVICE_API_KEY replace these.",
        "REALTIME = {",
    ]
    for name, value in config.items():
        if name == "namespaces":
            lines.append('    "namespaces": [')
            for namespace in value:
                lines.append("        {")
                lines += [
                    f'            "{key}": {_literal(item)},' for key, item in namespace.items()
                ]
                lines.append("        },")
            lines.append("    ],")
        else:
            lines.append(f'    "{name}": {_literal(value)},')
    return "\n".join([*lines, "}"])


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


SUB_COMMANDS = (
    SubCommand(
        "checkconfig",
        "Check the options, as the system checks do.",
        add_nothing,
        _checkconfig,
        "Check the options: run the system checks of the service and print their messages.\n"
        "The exit status is 1 if there is an error, 0 if there are only warnings.",
    ),
    SubCommand(
        "genconfig",
        "Print options to start with, with new secrets.",
        _add_genconfig,
        _genconfig,
    ),
)
