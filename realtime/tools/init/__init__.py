"""init: show and append the blocks of the quick start to the files of a site.

probe   runs the settings, in a process of its own
site    what they say
files   blocks at the ends of files: of all, or of none
urls    what the URLs do with a path
plan    what the files still need
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from realtime.config import sources
from realtime.tools.base import CommandResult, Options, SubCommand, escape_for_terminal
from realtime.tools.init.files import FileChange, NotWritten, write
from realtime.tools.init.plan import OPTION_VARIABLES, PlannedPart, make_plan
from realtime.tools.init.probe import VARIABLE

NEXT = """\
Next: python manage.py migrate
      python manage.py runserver"""


def _add_arguments(parser: CommandParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--yes", action="store_true", help="write without asking")
    choice.add_argument("--dry-run", action="store_true", help="show the changes; write nothing")


def _run(options: Options) -> Iterator[CommandResult]:
    directory = Path.cwd()
    if not (directory / "manage.py").is_file():
        raise CommandError("There is no manage.py. Run this command in the directory of yours.")
    environment = {name: sources.variable(name) for name in OPTION_VARIABLES}
    plan = make_plan(directory, sources.variable(VARIABLE), environment)
    changes = [part.change for part in plan.parts if part.change]
    by_hand = [part for part in plan.parts if part.reason]
    as_json = options.get("json", False)
    shown = "\n".join(map(_describe, plan.parts))
    warning = "".join(
        f"These settings do not run here, so nothing was tried with them: {each}\n"
        for each in map(escape_for_terminal, plan.untried)
    ).rstrip()
    value = _value(plan.parts, written=False)
    if by_hand:
        failure = "Nothing was written. Make these changes, then run this command again."
        yield CommandResult(shown, value, failure, warning)
    elif not changes or options["dry_run"]:
        text = shown if changes else f"{shown}\nNothing to do."
        yield CommandResult(text, value, warning=warning)
    else:
        if not as_json:
            yield CommandResult(shown, None, warning=warning)
        if not options["yes"]:
            _ask(as_json)
        try:
            write(changes)
        except NotWritten as error:
            raise CommandError(f"Nothing was written: {error}.") from error
        names = ", ".join(escape_for_terminal(change.name) for change in changes)
        yield CommandResult(f"\nChanged: {names}\n{NEXT}", _value(plan.parts, written=True))


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


def _describe(part: PlannedPart) -> str:
    """Return what a file needs, without control characters of the site."""
    if part.change:
        return _diff(part.change)
    name, reason = escape_for_terminal(part.name), escape_for_terminal(part.reason)
    if not reason:
        return f"{name}: nothing to add."
    code = "".join(f"    {line}".rstrip() + "\n" for line in part.block.splitlines())
    advice = "Make it" if part.is_new else "Add at the end, where it fits"
    return f"{name}: {reason}. {advice}:\n\n{code}"


def _value(parts: Sequence[PlannedPart], *, written: bool) -> dict[str, object]:
    return {
        "changes": [
            {"name": part.name, "diff": _diff(part.change)} for part in parts if part.change
        ],
        "written": written,
        "by_hand": [
            {"name": part.name, "reason": part.reason, "code": part.block}
            for part in parts
            if part.reason
        ],
    }


def _diff(change: FileChange) -> str:
    """Return a change as a unified diff."""
    old, new = (
        [line.rstrip("\r") for line in text.decode(errors="replace").split("\n")][:-1]
        for text in (change.before, change.after)
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
        "Show what the settings, asgi.py and urls.py of a site need, and append it if you agree.\n"
        "Run it in the directory of manage.py; as python -m realtime init it works before the\n"
        "service is in INSTALLED_APPS. It runs manage.py up to Django, and the settings. Where it\n"
        "is not sure, it writes nothing, shows what to add, and leaves with status 1.",
    ),
)
