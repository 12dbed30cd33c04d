"""`manage.py realtime`: tokens, configuration, the server API and a doctor, from a terminal.

The sub-commands are in `realtime.tools`.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import closing
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from realtime.auth.keys import InvalidKey
from realtime.config.reader import InvalidOptions
from realtime.errors import EngineUnavailable, Error
from realtime.payload import is_text
from realtime.serving import serving
from realtime.tools import terminal
from realtime.tools.base import (
    CommandResult,
    SubCommand,
    escape_for_terminal,
    escape_json_for_terminal,
)
from realtime.tools.commands import SUB_COMMANDS

_PATHS = {"pythonpath"}
"""Arguments that may be any bytes."""


class Command(BaseCommand):
    """Runs one sub-command and prints its answer as text or JSON."""

    help = "Tokens, configuration, the server API and a doctor for the real-time service."
    requires_system_checks: list[str] = []  # noqa: RUF012, as in Django; see checkconfig

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
            with closing(_run(command, options)) as answers:
                for answer in answers:
                    self._answer(answer, as_json)
        except _Failure as failure:
            if as_json:
                self._write_json({"error": failure.value})
            raise CommandError(failure.text) from failure.__cause__
        except BrokenPipeError:  # what reads the output has gone
            terminal.silence()
        except KeyboardInterrupt:
            if not command.goes_on:
                raise

    def _answer(self, answer: CommandResult, as_json: bool) -> None:
        if as_json:
            self._write_json(answer.value)
        elif answer.redraws and self.stdout.isatty():
            self.stdout.write(terminal.screen(answer.text))
        elif answer.text:
            self.stdout.write(answer.text)
        if answer.warning:
            self.stderr.write(answer.warning)
        self.stdout.flush()
        if answer.failure:
            raise CommandError(answer.failure)

    def _write_json(self, value: object) -> None:
        self.stdout.write(escape_json_for_terminal(msgspec.json.encode(value).decode()))


class _Failure(Exception):
    """A sub-command failed. `value` is the JSON form of `text`."""

    def __init__(self, text: str, value: dict[str, object] | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.value = value or {"message": text}


def _run(command: SubCommand, options: dict[str, Any]) -> Generator[CommandResult]:
    """Yield the answers of a sub-command.

    Raises:
        _Failure: it failed.
    """
    try:
        _check_text(options)
        answer = command.run(options)
        if isinstance(answer, CommandResult):
            yield answer
        else:
            yield from answer
    except CommandError as error:
        raise _Failure(str(error)) from error
    except Error as error:
        text = f"The service answers {error.code}: {escape_for_terminal(error.message)}."
        raise _Failure(text, {"code": error.code, "message": error.message}) from error
    except EngineUnavailable as error:
        text = f"{serving.server_name()} is not available: {error}"
        raise _Failure(escape_for_terminal(text), {"message": text}) from error
    except (InvalidOptions, InvalidKey) as error:
        reason = str(error).removesuffix(".")
        text = f"The configuration is not valid: {reason}. See: manage.py realtime checkconfig"
        raise _Failure(text) from error


def _check_text(options: dict[str, Any]) -> None:
    """Refuse bytes of a terminal that are not UTF-8: no message can carry them.

    Raises:
        CommandError: an argument has some.
    """
    for name in options.keys() - _PATHS:
        value = options[name]
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not is_text(text):
                raise CommandError(f"The argument {name} is not text in UTF-8.")


def _common_arguments() -> CommandParser:
    """Return the arguments that may also follow the name of a sub-command."""
    # without defaults, which would replace arguments before the name
    common = CommandParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--json", action="store_true", help="print one line of JSON")
    common.add_argument("--settings", help="module of Django's settings")
    common.add_argument("--pythonpath", help="directory to add to Python's path")
    common.add_argument("--traceback", action="store_true", help="show where an error came from")
    common.add_argument("--verbosity", type=int, choices=(0, 1, 2, 3), help=argparse.SUPPRESS)
    return common
