"""pending: the rows of durable publications, and what to do with those that were refused."""

from __future__ import annotations

from datetime import datetime

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from realtime.server_api.durable import ParkedRow, PendingRows
from realtime.serving import serving
from realtime.tools.base import CommandResult, Options, SubCommand, count, table

MAX_ROWS = 100
"""Parked rows that are shown."""


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "keys", nargs="*", metavar="KEY", help="keys of parked rows; none: all parked rows"
    )
    parser.add_argument("--channel", help="only the parked rows of this channel")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--retry", action="store_true", help="try parked rows again")
    action.add_argument("--drop", action="store_true", help="delete parked rows for good")


def _run(options: Options) -> CommandResult:
    rows = serving.pending
    if rows is None:
        raise CommandError('Add "realtime.pending" to INSTALLED_APPS.')
    keys, channel = options["keys"] or None, options["channel"]
    if (keys or channel) and not (options["retry"] or options["drop"]):
        raise CommandError("KEY and --channel are for --retry and --drop.")
    try:
        if options["retry"]:
            changed, done = rows.retry(keys, channel), "retried"
        elif options["drop"]:
            changed, done = rows.drop(keys, channel), "dropped"
        else:
            return _show(rows)
    except ValueError:
        raise CommandError("A key has 32 hexadecimal digits.") from None
    except DatabaseError as error:
        raise _failed(error) from error
    return CommandResult(f"{count(changed, 'row')} {done}.", {done: changed})


def _show(rows: PendingRows) -> CommandResult:
    try:
        overview, parked = rows.overview(), rows.parked(MAX_ROWS)
    except DatabaseError as error:
        raise _failed(error) from error
    oldest = "" if overview.oldest is None else f", the oldest for {overview.oldest:.0f} s"
    lines = [
        f"{count(overview.waiting, 'row')} waiting{oldest};"
        f" {overview.scheduled} scheduled; {overview.parked} parked."
    ]
    if parked:
        lines += ["", table([("key", "channel", "created", "error"), *map(_cells, parked)])]
    value = overview._asdict() | {"rows": [row._asdict() for row in parked]}
    return CommandResult("\n".join(lines), value)


def _cells(row: ParkedRow) -> tuple[str, ...]:
    return row.key, row.channel, _time(row.created), row.error


def _time(moment: datetime | None) -> str:
    return "unknown" if moment is None else moment.isoformat(" ", "seconds")


def _failed(error: DatabaseError) -> CommandError:
    return CommandError(f"The database answers: {error}. Was the app migrated?")


SUB_COMMANDS = (
    SubCommand(
        "pending",
        "Show the rows of durable publications; retry or drop those that were refused.",
        _add_arguments,
        _run,
        "Show how many durable publications wait to be published, how many are scheduled, and\n"
        "those that are parked: the service refused them, or could not read them.\n"
        "--retry publishes parked rows again, --drop deletes them: all of them, or those that\n"
        "the keys or --channel choose. Parked rows stay until you do one or the other.",
    ),
)
