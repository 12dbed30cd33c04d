"""tail: publications, or the frames of a user's connections, as they come."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from django.core.management.base import CommandError, CommandParser

from realtime.errors import BadRequest, EngineUnavailable, NotServing
from realtime.operators.following import (
    DEFAULT_SECONDS,
    MAX_SECONDS,
    Copied,
    Poll,
    Publications,
    UserFrames,
)
from realtime.operators.questions import CopyKind
from realtime.serving import serving
from realtime.tools import admin_log
from realtime.tools.base import CommandResult, Options, SubCommand, count, cut, escape_for_terminal
from realtime.tools.terminal import pause

POLL_INTERVAL = 0.5
"""Seconds."""
NAME_LENGTH = 120
"""Characters of a name that are shown."""
NOT_HERE = (
    "Only processes that share a Redis or PostgreSQL can see each other (options redis_url and"
    " engine). With the memory engine, use the live tail of the panel."
)


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "channels", nargs="?", metavar="CHANNELS", help="a channel; * is any text, ? any character"
    )
    parser.add_argument("--user", metavar="ID", help="the frames of this user's connections")
    parser.add_argument("--mask", action="store_true", help="leave payloads out")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=DEFAULT_SECONDS,
        help=f"how long, up to {MAX_SECONDS:g} (default: {DEFAULT_SECONDS:g})",
    )
    parser.add_argument(
        admin_log.OPERATOR,
        metavar="NAME",
        help="with --user: your name as a Django user, for the admin's log (default: the name of"
        " the system's user)",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"not a number of seconds up to {MAX_SECONDS:g}")
    return seconds


_seconds.__name__ = "number of seconds"


def _run(options: Options) -> Iterator[CommandResult]:
    with _mirror(options) as mirror:
        missing: list[str] = []
        is_away = False
        while not mirror.is_over:
            try:
                poll = mirror.poll()
            except NotServing:
                raise CommandError(NOT_HERE) from None
            except TimeoutError:
                return
            except EngineUnavailable as error:
                if not is_away:
                    yield _note(f"{serving.server_name()} is not available: {error}")
                is_away = True
            else:
                is_away = False
                yield from map(_answer, poll.copies)
                yield from _notes(poll, missing)
                missing = poll.missing
            pause(POLL_INTERVAL)


def _mirror(options: Options) -> UserFrames | Publications:
    """Return the mirror that the arguments ask for, and log it; raises CommandError."""
    user, channels = options["user"], options["channels"]
    if (user is None) == (channels is None):
        raise CommandError("Name either channels, or a user with --user.")
    masked, seconds = options["mask"], options["seconds"]
    with suppress(BadRequest):
        if user is None:
            return Publications(channels, masked=masked, seconds=seconds)
        mirror = UserFrames(user, masked=masked, seconds=seconds)
        payloads = "without payloads" if masked else "with payloads"
        action = f"Frames followed: {seconds:g} s, {payloads}"
        admin_log.record(options["operator"], user, action)
        return mirror
    raise CommandError("An empty name, or one that is too long, is none.")


def _notes(poll: Poll, missing_before: list[str]) -> Iterator[CommandResult]:
    if poll.left_out:
        yield _note(f"{poll.left_out} more left out: more came than is copied", poll.left_out)
    for name in poll.missing:
        if name not in missing_before:
            yield _note(f"No answer from {cut(name, NAME_LENGTH)}")
    if poll.refused:
        raise CommandError(
            f"{count(len(poll.refused), 'node')} cannot copy for one more tail: end another"
            " tail, or wait ten seconds."
        )


def _note(text: str, left_out: int = 0) -> CommandResult:
    value: dict[str, object] = {"note": text}
    if left_out:
        value["left_out"] = left_out
    return CommandResult(f"-- {escape_for_terminal(text)}", value)


_SIGNS: dict[CopyKind, str] = {
    "there": "==",
    "opened": "++",
    "received": "->",
    "sent": "<-",
    "closed": "--",
    "published": "",
}


def _answer(copied: Copied) -> CommandResult:
    node, copy = copied
    moment = datetime.fromtimestamp(copy.time, UTC).strftime("%H:%M:%S.%f")[:-3]
    if copy.kind == "published":
        subject = cut(copy.channel, NAME_LENGTH)
        if copy.key:
            subject += f" {cut(copy.key, NAME_LENGTH)}" + (" removed" if copy.removed else "")
    else:
        subject = f"{escape_for_terminal(copy.client[:8])} {_SIGNS[copy.kind]}"
    value: dict[str, object] = {
        "time": copy.time,
        "node": node,
        "kind": copy.kind,
        "client": copy.client,
        "text": copy.text,
    }
    if copy.kind == "published":
        value |= {"channel": copy.channel, "offset": copy.offset, "epoch": copy.epoch}
        if copy.key:
            value |= {"key": copy.key, "removed": copy.removed}
    return CommandResult(f"{moment} {subject} {escape_for_terminal(copy.text)}".rstrip(), value)


SUB_COMMANDS = (
    SubCommand(
        "tail",
        "Follow publications in channels, or the frames of a user's connections.",
        _add_arguments,
        _run,
        "Follow the publications in channels that match a pattern and have a subscriber. Or\n"
        "with --user: the frames of all connections of a user, in both directions. It ends\n"
        "after five minutes, or --seconds, or at Ctrl-C. Values of fields whose names say that\n"
        "they are tokens, passwords or the like are never shown; --mask leaves payloads out,\n"
        "too. Clients notice nothing. Following a user is recorded in the admin's log.\n"
        "It needs Redis or PostgreSQL, by which it reaches the nodes.",
        goes_on=True,
    ),
)
