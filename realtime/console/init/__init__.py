"""init: show and make the changes of the quick start to the files of a site.

source    a Python file that is changed by insertions
project   where the files of a project are
plan      what they still need
writing   all files are changed, or none

No code of the site runs: it may not work before it is changed.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from realtime.config import sources
from realtime.console.base import Answer, Options, SubCommand, escape_for_terminal
from realtime.console.init.plan import OPTION_VARIABLES, Advice, make_plan
from realtime.console.init.project import SETTINGS_VARIABLE, settings_module
from realtime.console.init.source import lines_of
from realtime.console.init.writing import Change, NotWritten, write

NEXT = """\
Next: python manage.py migrate
      python manage.py runserver"""


def _add_arguments(parser: CommandParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--yes", action="store_true", help="write without asking")
    choice.add_argument("--dry-run", action="store_true", help="show the changes; write nothing")


def _run(options: Options) -> Iterator[Answer]:
    directory = Path.cwd()
    environment = {name: sources.variable(name) for name in (SETTINGS_VARIABLE, *OPTION_VARIABLES)}
    module = settings_module(directory, environment[SETTINGS_VARIABLE])
    changes, advice = make_plan(directory, module, environment)
    as_json = options.get("json", False)
    if advice:
        yield _advise(advice)
    elif not changes:
        yield Answer("Nothing to do.", {"changes": [], "written": False})
    elif options["dry_run"]:
        yield Answer(_diffs(changes), _value(changes, written=False))
    else:
        if not as_json:
            yield Answer(_diffs(changes), None)
        if not options["yes"]:
            _ask(as_json)
        try:
            write(changes)
        except NotWritten as error:
            raise CommandError(f"Nothing was written: {error}.") from error
        names = ", ".join(escape_for_terminal(change.name) for change in changes)
        yield Answer(f"\nChanged: {names}\n{NEXT}", _value(changes, written=True))


def _ask(as_json: bool) -> None:
    """Raise CommandError where the answer of the terminal is not yes, or there is none."""
    if as_json or not sys.stdin.isatty():
        raise CommandError("Nothing was written: there is no terminal to ask. Add --yes.")
    try:
        answer = input("\nWrite these changes? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError("Nothing was written.")


def _advise(advice: Sequence[Advice]) -> Answer:
    """Return what the authors of files have to do."""
    parts = []
    for each in advice:
        name, reason = escape_for_terminal(each.name), escape_for_terminal(each.reason)
        if each.code:
            code = "\n".join(f"    {line}".rstrip() for line in each.code.splitlines())
            parts.append(f"{name}: {reason}. Add at the end, where it fits:\n\n{code}\n")
        else:
            parts.append(f"{name}: {reason}.\n")
    return Answer(
        "\n".join(parts).rstrip(),
        {"changes": [], "written": False, "by_hand": [each._asdict() for each in advice]},
        "Nothing was written. Make these changes, then run this command again for the rest.",
    )


def _value(changes: Sequence[Change], *, written: bool) -> dict[str, object]:
    files = [{"name": change.name, "diff": _diff(change)} for change in changes]
    return {"changes": files, "written": written}


def _diffs(changes: Sequence[Change]) -> str:
    return "\n".join(map(_diff, changes))


def _diff(change: Change) -> str:
    """Return a change as a unified diff, without the control characters of the file but tabs."""
    old, new = (
        [line.rstrip("\r\n") for line in lines_of(text)] for text in (change.before, change.after)
    )
    lines = difflib.unified_diff(old, new, change.name, change.name, lineterm="")
    return "\n".join(
        "\t".join(map(escape_for_terminal, line.split("\t"))).rstrip() for line in lines
    )


SUB_COMMANDS = (
    SubCommand(
        "init",
        "Add the service to the settings, asgi.py and urls.py of a site.",
        _add_arguments,
        _run,
        "Show what the settings, asgi.py and urls.py of a site need, and write it if you agree.\n"
        "Run it in the directory of manage.py; as python -m realtime init it works before the\n"
        "service is in INSTALLED_APPS. No code of the site runs. Where the command is not sure,\n"
        "it writes nothing, says what to add, and leaves with status 1.",
    ),
)
