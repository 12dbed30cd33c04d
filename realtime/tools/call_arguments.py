"""Arguments of the sub-commands that call the server API, named like the params they become."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import msgspec
from django.core.management.base import CommandError, CommandParser
from msgspec import Raw

from realtime import payload
from realtime.engine.maps import MAX_TTL
from realtime.protocol.messages import UINT64_MAX
from realtime.server_api.operations import MAX_BLOCK_SECONDS, MAX_PAGE
from realtime.tools.base import Options, number

INT32_MAX = 2**31 - 1


class Argument:
    """An argument, as a parser takes it."""

    def __init__(self, *names: str, **options: Any) -> None:
        self._names = names
        self._options = options

    def add(self, parser: CommandParser) -> None:
        parser.add_argument(*self._names, **self._options)


def _position(text: str) -> dict[str, object]:
    offset, _, epoch = text.partition(":")
    return {"offset": number(int, 0, UINT64_MAX)(offset), "epoch": epoch}


_position.__name__ = "position"


def _end_of_block(text: str) -> int:
    """Return when a block of some seconds ends, Unix seconds."""
    return math.ceil(time.time() + number(int, 1, MAX_BLOCK_SECONDS)(text))


_end_of_block.__name__ = "number"


def _or_none(text: str) -> str | None:
    return text or None


CHANNEL = Argument("channel", help="name of the channel")
USER = Argument("user", help="user ID")
CHANNEL_OR_ALL = Argument("channel", nargs="?", default="", help="without it, all channels")
SECONDS = Argument("expire_at", type=_end_of_block, metavar="seconds", help="how long, from now")
CHANNELS = Argument("channels", nargs="+", metavar="channel", help="names of channels")
KEY = Argument("key", help="key of the map")
_DATA = (
    Argument("data", help='JSON; "-" reads it from standard input'),
    Argument("--text", action="store_true", help="the data are a plain string, not JSON"),
    Argument(
        "--tag",
        dest="tags",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="text by which subscribers can filter; may be repeated",
    ),
    Argument(
        "--once",
        dest="idempotency_key",
        type=_or_none,
        metavar="KEY",
        help="idempotency key: publish once within five minutes",
    ),
)
PUBLICATION = (
    *_DATA,
    Argument(
        "--skip-history", action="store_true", help="deliver only; the channel does not keep it"
    ),
    Argument(
        "--version",
        type=number(int, 1, UINT64_MAX),
        metavar="NUMBER",
        help="publish only if this is newer than the last version in the channel",
    ),
    Argument(
        "--expect",
        type=_position,
        metavar="OFFSET[:EPOCH]",
        help="publish only if this is the position of the channel; 0 before the first publication",
    ),
    Argument(
        "--version-epoch", type=_or_none, metavar="TEXT", help="the run in which versions grow"
    ),
)
PUT = (
    CHANNEL,
    KEY,
    *_DATA,
    Argument(
        "--key-mode",
        choices=("if_new", "if_exists"),
        help="put only if the key has no entry, or only if it has one",
    ),
    Argument(
        "--ttl",
        type=number(int, 0, MAX_TTL),
        metavar="SECONDS",
        help="how long the entry lives; 0: forever",
    ),
    Argument(
        "--expect",
        type=_position,
        metavar="OFFSET[:EPOCH]",
        help="put only if this is the position of the entry; 0 without an entry",
    ),
)
STATE = (
    CHANNEL,
    Argument("--key", help="only this one"),
    Argument(
        "--limit",
        type=number(int, 1, MAX_PAGE),
        default=MAX_PAGE,
        metavar="NUMBER",
        help=f"entries at most (default: {MAX_PAGE})",
    ),
    Argument("--cursor", help="only keys after this one"),
)
HISTORY = (
    CHANNEL,
    Argument(
        "--limit",
        type=number(int, 0, INT32_MAX),
        default=-1,
        metavar="NUMBER",
        help="publications at most (default: all)",
    ),
    Argument(
        "--since",
        type=_position,
        metavar="OFFSET[:EPOCH]",
        help="only those after this position; with --reverse those before it",
    ),
    Argument("--reverse", action="store_true", help="newest publication first"),
)


def params_of(options: Options, names: tuple[str, ...]) -> dict[str, object]:
    """Return the params of a method: the arguments that have the names of its params.

    Raises:
        CommandError: the data are not JSON, a tag has no value, or there is an epoch and no
            version.
    """
    params = {name: options[name] for name in names if options.get(name) is not None}
    if "data" in params:
        params |= {"data": _data(options["data"], options["text"]), "tags": _tags(options["tags"])}
        if "version_epoch" in params and "version" not in params:
            raise CommandError("--version-epoch needs --version.")
    return params


def _tags(texts: list[str]) -> dict[str, str]:
    if not all("=" in text for text in texts):
        raise CommandError("A tag is NAME=VALUE.")
    return dict(text.split("=", 1) for text in texts)


def _data(text: str, is_text: bool) -> Raw:
    if text == "-":
        text = sys.stdin.read()
        if is_text:
            text = text.removesuffix("\n")
    try:
        raw = msgspec.json.encode(text) if is_text else text.strip().encode()
        return Raw(payload.check(raw).raw)
    except ValueError:
        raise CommandError(
            "The data are not JSON. A JSON string needs double quotes; --text takes plain text."
        ) from None
