"""`manage.py realtime`: tokens, configuration, the server API and a doctor, from a terminal.

The sub-commands are in `realtime.console`.
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from realtime.auth.keys import InvalidKey
from realtime.config.reader import InvalidOptions
from realtime.console import SUB_COMMANDS
from realtime.console.base import Answer, SubCommand, shown
from realtime.errors import EngineUnavailable, Error


class Command(BaseCommand):
    """Runs one sub-command and prints its answer, for people or as JSON."""

    help = "Tokens, configuration, the server API and a doctor for the real-time service."
    requires_system_checks: list[str] = []  # noqa: RUF012, as in Django; checkconfig shows them

    def add_arguments(self, parser: CommandParser) -> None:
        choices = parser.add_subparsers(dest="sub_command", metavar="COMMAND", required=True)
        common = _common_arguments()
        for command in SUB_COMMANDS.values():
            own = choices.add_parser(
                command.name,
                help=command.help,
                description=command.description or command.help,
                parents=[common],
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            command.add_arguments(own)

    def handle(self, *args: Any, **options: Any) -> None:
        command = SUB_COMMANDS[options["sub_command"]]
        as_json: bool = options.get("json", False)
        try:
            answer = _run(command, options)
        except _Refused as refused:
            if as_json:
                self._write_json({"error": refused.value})
            raise CommandError(refused.text) from refused.__cause__
        if as_json:
            self._write_json(answer.value)
        elif answer.text:
            self.stdout.write(answer.text)
        if answer.failure:
            raise CommandError(answer.failure)

    def _write_json(self, value: object) -> None:
        self.stdout.write(msgspec.json.encode(value).decode())


class _Refused(Exception):
    """A sub-command did not do what was asked; `value` is the JSON form of `text`."""

    def __init__(self, text: str, value: dict[str, object] | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.value = value or {"message": text}


def _run(command: SubCommand, options: dict[str, Any]) -> Answer:
    try:
        return command.run(options)
    except CommandError as error:
        raise _Refused(str(error)) from error
    except Error as error:
        text = f"The service answers {error.code}: {shown(error.message)}."
        raise _Refused(text, {"code": error.code, "message": error.message}) from error
    except EngineUnavailable as error:
        raise _Refused(f"Redis is not available: {error}") from error
    except (InvalidOptions, InvalidKey) as error:
        reason = str(error).removesuffix(".")
        text = f"The configuration cannot be used: {reason}. See: manage.py realtime checkconfig"
        raise _Refused(text) from error


def _common_arguments() -> CommandParser:
    """Arguments that may stand behind the name of a sub-command, too."""
    # no defaults: they would win over what stands in front of the name
    common = CommandParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--json", action="store_true", help="print one line of JSON")
    common.add_argument("--settings", help="module of Django's settings")
    common.add_argument("--pythonpath", help="directory to add to Python's path")
    common.add_argument("--traceback", action="store_true", help="show where an error came from")
    common.add_argument("--verbosity", type=int, choices=(0, 1, 2, 3), help=argparse.SUPPRESS)
    return common
