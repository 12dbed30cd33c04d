"""publish, channels, info and the other methods of the server API, as sub-commands.

With Redis they run in this process; with `--url` they are sent to the running service over
HTTP. The result is that of the server API in either case.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
from django.core.management.base import CommandError, CommandParser
from msgspec import Raw, Struct

from realtime import payload
from realtime.config import sources
from realtime.console.base import (
    Answer,
    Options,
    SubCommand,
    add_nothing,
    count,
    escape_for_terminal,
    table,
)
from realtime.console.remote import Remote, Unreachable, add_url_arguments, explain_api
from realtime.errors import Error, NotServing
from realtime.server_api import methods
from realtime.serving import serving

NOT_HERE = (
    "With the memory engine, only the process that serves clients can do this. Send it there,"
    " for example with --url http://127.0.0.1:8000, or use Redis (option redis_url)."
)

NODE_HEADING = ("NAME", "UID", "VERSION", "CLIENTS", "USERS", "CHANNELS", "UPTIME")


# calling the service


def _call(options: Options, method: str, params: dict[str, object]) -> bytes:
    """Call a method and return its result as JSON.

    Raises:
        Error: the service refuses the call.
        EngineUnavailable: Redis does not answer.
        CommandError: the service cannot be reached.
    """
    encoded = msgspec.json.encode(params)
    if options["url"]:
        return _call_remote(Remote(options["url"], options["timeout"]), method, encoded)
    number = methods.METHOD_NUMBERS[method]
    try:
        return serving.call(lambda member: methods.run(member, number, encoded))
    except NotServing:
        raise CommandError(NOT_HERE) from None


class _ErrorReply(Struct):
    code: int
    message: str


class _Reply(Struct):
    result: Raw = Raw(b"{}")
    error: _ErrorReply | None = None


def _call_remote(remote: Remote, method: str, params: bytes) -> bytes:
    config = sources.current()
    if not config.api_key and not config.api_insecure:
        raise CommandError("The server API is closed: set api_key here and in the service.")
    try:
        response = remote.command(method, params, config.api_key)
    except Unreachable as error:
        raise CommandError(str(error)) from error
    if response.status != 200:
        raise CommandError(
            f"The server API at {remote} answers with status {response.status}."
            f" {explain_api(response, config)}"
        )
    try:
        reply = msgspec.json.decode(response.body, type=_Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise CommandError(f"The answer of {remote} is not one of the server API.") from None
    if reply.error is not None:
        raise Error.received(reply.error.code, reply.error.message)
    return bytes(reply.result)


# arguments


def _add_channel(parser: CommandParser) -> None:
    parser.add_argument("channel", help="name of the channel")


def _add_user(parser: CommandParser) -> None:
    parser.add_argument("user", help="user ID")


def _add_user_and_channel(parser: CommandParser) -> None:
    _add_user(parser)
    parser.add_argument("channel", nargs="?", default="", help="without it, all channels")


def _add_data(parser: CommandParser) -> None:
    parser.add_argument("data", help='JSON; "-" reads it from standard input')
    parser.add_argument("--text", action="store_true", help="the data are a plain string, not JSON")


def _add_publish(parser: CommandParser) -> None:
    _add_channel(parser)
    _add_data(parser)


def _add_broadcast(parser: CommandParser) -> None:
    parser.add_argument("channels", nargs="+", metavar="channel", help="names of channels")
    _add_data(parser)


def _data(options: Options) -> Raw:
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


# layout of the results


class _Client(Struct):
    user: str = ""
    client: str = ""
    conn_info: Raw = Raw(b"")
    chan_info: Raw = Raw(b"")


class _Presence(Struct):
    presence: dict[str, _Client]


class _Stats(Struct):
    num_clients: int
    num_users: int


class _Publication(Struct):
    data: Raw
    uid: str = ""
    info: _Client | None = None


class _History(Struct):
    publications: list[_Publication]


class _Channels(Struct):
    channels: list[str]


class _Node(Struct):
    uid: str
    name: str
    version: str
    num_clients: int
    num_users: int
    num_channels: int
    uptime: int


class _Info(Struct):
    nodes: list[_Node]


def _show_presence(result: _Presence) -> str:
    if not result.presence:
        return "No client is subscribed."
    rows: list[tuple[str, ...]] = [("CLIENT", "USER", "CONNECTION INFO", "CHANNEL INFO")]
    for client, info in result.presence.items():
        infos = (
            escape_for_terminal(bytes(raw).decode()) for raw in (info.conn_info, info.chan_info)
        )
        rows.append((client, info.user, *infos))
    return table(rows)


def _show_stats(result: _Stats) -> str:
    return f"{count(result.num_clients, 'client')}, {count(result.num_users, 'user')}"


def _show_history(result: _History) -> str:
    if not result.publications:
        return "The channel keeps no publication."
    rows: list[tuple[str, ...]] = [("UID", "USER", "DATA")]
    for publication in result.publications:
        user = "" if publication.info is None else publication.info.user
        data = bytes(publication.data).decode()
        rows.append(
            (
                escape_for_terminal(publication.uid),
                escape_for_terminal(user),
                escape_for_terminal(data),
            )
        )
    return table(rows)


def _show_channels(result: _Channels) -> str:
    return "\n".join(map(escape_for_terminal, result.channels)) or "No channel has a subscriber."


def _show_info(result: _Info) -> str:
    if not result.nodes:
        return "No process serves clients."
    rows: list[tuple[str, ...]] = [NODE_HEADING]
    for node in result.nodes:
        numbers = (node.num_clients, node.num_users, node.num_channels)
        names = (
            escape_for_terminal(node.name),
            escape_for_terminal(node.uid),
            escape_for_terminal(node.version),
        )
        rows.append((*names, *map(str, numbers), f"{node.uptime} s"))
    return table(rows)


# the sub-commands


class _Row(NamedTuple):
    """One method: its arguments, its params, and the layout of its result."""

    method: str
    help: str
    add_arguments: Callable[[CommandParser], None]
    params: Callable[[Options], dict[str, object]]
    shape: Any
    show: Callable[[Any], str]


def _channel(options: Options) -> dict[str, object]:
    return {"channel": options["channel"]}


def _nothing(options: Options) -> dict[str, object]:
    return {}


def _done(text: str) -> Callable[[Any], str]:
    return lambda result: text


_ROWS = (
    _Row(
        "publish",
        "Publish into a channel.",
        _add_publish,
        lambda options: {"channel": options["channel"], "data": _data(options)},
        None,
        _done("Published."),
    ),
    _Row(
        "broadcast",
        "Publish the same data into several channels.",
        _add_broadcast,
        lambda options: {"channels": options["channels"], "data": _data(options)},
        None,
        _done("Published."),
    ),
    _Row(
        "channels",
        "List the channels that have a subscriber.",
        add_nothing,
        _nothing,
        _Channels,
        _show_channels,
    ),
    _Row(
        "presence",
        "Show the clients that are subscribed to a channel.",
        _add_channel,
        _channel,
        _Presence,
        _show_presence,
    ),
    _Row(
        "presence_stats",
        "Count the clients and users that are subscribed to a channel.",
        _add_channel,
        _channel,
        _Stats,
        _show_stats,
    ),
    _Row(
        "history",
        "Show the publications that a channel keeps, oldest first.",
        _add_channel,
        _channel,
        _History,
        _show_history,
    ),
    _Row(
        "history_remove",
        "Remove the publications that a channel keeps.",
        _add_channel,
        _channel,
        None,
        _done("Removed."),
    ),
    _Row(
        "info",
        "List the processes that serve clients.",
        add_nothing,
        _nothing,
        _Info,
        _show_info,
    ),
    _Row(
        "disconnect",
        "Close all connections of a user; their clients do not reconnect.",
        _add_user,
        lambda options: {"user": options["user"]},
        None,
        _done("Sent to every process."),
    ),
    _Row(
        "unsubscribe",
        "End a user's subscription to a channel, or to all channels.",
        _add_user_and_channel,
        lambda options: {"user": options["user"], "channel": options["channel"]},
        None,
        _done("Sent to every process."),
    ),
)


def _add_arguments(row: _Row, parser: CommandParser) -> None:
    row.add_arguments(parser)
    add_url_arguments(
        parser,
        "send it to the running site at this address, with the configured api_key;"
        " needed with the memory engine",
    )


def _run(row: _Row, options: Options) -> Answer:
    result = _call(options, row.method, row.params(options))
    decoded = None if row.shape is None else msgspec.json.decode(result, type=row.shape)
    return Answer(row.show(decoded), Raw(result))


SUB_COMMANDS = tuple(
    SubCommand(row.method, row.help, partial(_add_arguments, row), partial(_run, row))
    for row in _ROWS
)
