"""Arguments of the sub-commands that call the server API, and the params they become."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import msgspec
from django.core.management.base import CommandError, CommandParser
from msgspec import Raw

from realtime import payload
from realtime.protocol.messages import UINT64_MAX
from realtime.server_api.operations import MAX_BLOCK_SECONDS
from realtime.tools.base import Options

INT32_MAX = 2**31 - 1


def add_channel(parser: CommandParser) -> None:
    parser.add_argument("channel", help="name of the channel")


def add_user(parser: CommandParser) -> None:
    parser.add_argument("user", help="user ID")


def add_user_and_channel(parser: CommandParser) -> None:
    add_user(parser)
    parser.add_argument("channel", nargs="?", default="", help="without it, all channels")


def add_user_and_seconds(parser: CommandParser) -> None:
    add_user(parser)
    parser.add_argument("seconds", type=_between(1, MAX_BLOCK_SECONDS), help="how long, from now")


def end_of(options: Options) -> int:
    """Return when a block ends, Unix seconds."""
    seconds: int = options["seconds"]
    return math.ceil(time.time() + seconds)


def _add_data(parser: CommandParser) -> None:
    parser.add_argument("data", help='JSON; "-" reads it from standard input')
    parser.add_argument("--text", action="store_true", help="the data are a plain string, not JSON")


def add_publish(parser: CommandParser) -> None:
    add_channel(parser)
    _add_data(parser)
    _add_extras(parser)


def add_broadcast(parser: CommandParser) -> None:
    parser.add_argument("channels", nargs="+", metavar="channel", help="names of channels")
    _add_data(parser)
    _add_extras(parser)


def _add_extras(parser: CommandParser) -> None:
    parser.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="text by which subscribers can filter; may be repeated",
    )
    parser.add_argument(
        "--once", metavar="KEY", help="idempotency key: publish once within five minutes"
    )
    parser.add_argument(
        "--skip-history", action="store_true", help="deliver only; the channel does not keep it"
    )
    parser.add_argument(
        "--version",
        type=_between(1, UINT64_MAX),
        metavar="NUMBER",
        help="publish only if this is newer than the last version in the channel",
    )
    parser.add_argument("--version-epoch", metavar="TEXT", help="the run in which versions grow")


def extras_of(options: Options) -> dict[str, object]:
    """Return the params of a publication besides channel and data.

    Raises:
        CommandError: a tag has no value, or there is an epoch and no version.
    """
    tags: dict[str, str] = {}
    for tag in options["tag"]:
        name, equals, tags[name] = tag.partition("=")
        if not equals:
            raise CommandError("A tag is NAME=VALUE.")
    if options["version_epoch"] and not options["version"]:
        raise CommandError("--version-epoch needs --version.")
    extras = {
        "tags": tags,
        "idempotency_key": options["once"],
        "skip_history": options["skip_history"],
        "version": options["version"],
        "version_epoch": options["version_epoch"],
    }
    return {name: value for name, value in extras.items() if value}


def add_history(parser: CommandParser) -> None:
    add_channel(parser)
    parser.add_argument(
        "--limit",
        type=_between(0, INT32_MAX),
        metavar="NUMBER",
        help="publications at most (default: all)",
    )
    parser.add_argument(
        "--since",
        type=_position,
        metavar="OFFSET[:EPOCH]",
        help="only those after this position; with --reverse those before it",
    )
    parser.add_argument("--reverse", action="store_true", help="newest publication first")


def history_params(options: Options) -> dict[str, object]:
    limit = options["limit"]
    return {
        "channel": options["channel"],
        "limit": -1 if limit is None else limit,
        "since": options["since"],
        "reverse": options["reverse"],
    }


def _between(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number. It raises ValueError, of which argparse makes a message."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value

    number.__name__ = "number"
    return number


def _position(text: str) -> dict[str, object]:
    offset, _, epoch = text.partition(":")
    return {"offset": _between(0, UINT64_MAX)(offset), "epoch": epoch}


_position.__name__ = "position"


def data_of(options: Options) -> Raw:
    """Return the data to publish.

    Raises:
        CommandError: the argument is not JSON.
    """
    text: str = options["data"]
    if text == "-":
        text = sys.stdin.read()
        if options["text"]:
            text = text.removesuffix("\n")
    try:
        raw = msgspec.json.encode(text) if options["text"] else text.strip().encode()
        return Raw(payload.check(raw).raw)
    except ValueError:
        raise CommandError(
            "The data are not JSON. A JSON string needs double quotes; --text takes plain text."
        ) from None
