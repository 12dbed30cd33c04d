"""publish, channels, info and the other methods of the server API, as sub-commands.

With Redis they run in this process; with `--url` they are sent to the running service over
HTTP. The result is that of the server API in either case.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
from django.core.management.base import CommandError, CommandParser
from msgspec import Raw, Struct

from realtime.config import sources
from realtime.errors import Error, NotServing
from realtime.server_api import methods, methods_v2
from realtime.serving import serving
from realtime.tools.base import (
    Answer,
    Options,
    SubCommand,
    add_nothing,
)
from realtime.tools.call_arguments import (
    add_broadcast,
    add_channel,
    add_history,
    add_publish,
    add_user,
    add_user_and_channel,
    add_user_and_seconds,
    data_of,
    end_of,
    extras_of,
    history_params,
)
from realtime.tools.remote import Remote, Unreachable, add_url_arguments, explain_api
from realtime.tools.results import (
    Blocked,
    Broadcast,
    Channels,
    Failure,
    History,
    Info,
    Position,
    Presence,
    Sent,
    Stats,
    failure_of,
    missing_of,
    show_blocked,
    show_broadcast,
    show_channels,
    show_history,
    show_info,
    show_position,
    show_presence,
    show_sent,
    show_stats,
)

NOT_HERE = (
    "With the memory engine, only the process that serves clients can do this. Send it there,"
    " for example with --url http://127.0.0.1:8000, or use Redis (option redis_url)."
)


# calling the service


def _call(options: Options, method: str, params: dict[str, object], *, newer: bool) -> bytes:
    """Call a method and return its result as JSON.

    Args:
        options: the arguments of the sub-command.
        method: its name.
        params: its params.
        newer: whether it is one of `POST /api/<method>`.

    Raises:
        Error: the service refuses the call.
        EngineUnavailable: Redis does not answer.
        CommandError: the service cannot be reached.
    """
    encoded = msgspec.json.encode(params)
    if options["url"]:
        remote = Remote(options["url"], options["timeout"])
        return call_remote(remote, method, encoded, newer=newer)
    try:
        if newer:
            return serving.call(lambda member: methods_v2.run(member, method, encoded))
        number = methods.METHOD_NUMBERS[method]
        return serving.call(lambda member: methods.run(member, number, encoded))
    except NotServing:
        raise CommandError(NOT_HERE) from None


class _Reply(Struct):
    result: Raw = Raw(b"{}")
    error: Failure | None = None


def call_remote(remote: Remote, method: str, params: bytes, *, newer: bool) -> bytes:
    """As `_call`, over HTTP; `params` is JSON.

    Raises:
        Error: the service refuses the call.
        CommandError: the service cannot be reached, or gives no usable answer.
    """
    config = sources.current()
    if not config.api_key and not config.api_insecure:
        raise CommandError("The server API is closed: set api_key here and in the service.")
    try:
        send = remote.call if newer else remote.command
        response = send(method, params, config.api_key)
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


# the sub-commands


class _Row(NamedTuple):
    """One method: its arguments, its params, and the layout of its result.

    newer: whether it is one of `POST /api/<method>`.
    command: the name of the sub-command, where it is not that of the method.
    """

    method: str
    help: str
    add_arguments: Callable[[CommandParser], None]
    params: Callable[[Options], dict[str, object]]
    shape: Any
    show: Callable[[Any], str]
    newer: bool = False
    command: str = ""


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
        add_publish,
        lambda options: {**_channel(options), "data": data_of(options), **extras_of(options)},
        Position,
        show_position,
        newer=True,
    ),
    _Row(
        "broadcast",
        "Publish the same data into several channels.",
        add_broadcast,
        lambda options: {
            "channels": options["channels"],
            "data": data_of(options),
            **extras_of(options),
        },
        Broadcast,
        show_broadcast,
        newer=True,
    ),
    _Row(
        "channels",
        "List the channels that have a subscriber.",
        add_nothing,
        _nothing,
        Channels,
        show_channels,
    ),
    _Row(
        "presence",
        "Show the clients that are subscribed to a channel.",
        add_channel,
        _channel,
        Presence,
        show_presence,
    ),
    _Row(
        "presence_stats",
        "Count the clients and users that are subscribed to a channel.",
        add_channel,
        _channel,
        Stats,
        show_stats,
    ),
    _Row(
        "history",
        "Show the publications that a channel keeps, oldest first.",
        add_history,
        history_params,
        History,
        show_history,
        newer=True,
    ),
    _Row(
        "history_remove",
        "Remove the publications that a channel keeps.",
        add_channel,
        _channel,
        None,
        _done("Removed."),
    ),
    _Row(
        "info",
        "List the processes that serve clients.",
        add_nothing,
        _nothing,
        Info,
        show_info,
    ),
    _Row(
        "disconnect",
        "Close all connections of a user; their clients do not reconnect.",
        add_user,
        lambda options: {"user": options["user"]},
        Sent,
        show_sent,
    ),
    _Row(
        "block_user",
        "Close all connections of a user, and refuse new ones for some seconds.",
        add_user_and_seconds,
        lambda options: {"user": options["user"], "expire_at": end_of(options)},
        Sent,
        show_sent,
        newer=True,
        command="block",
    ),
    _Row(
        "unblock_user",
        "Let a blocked user connect again.",
        add_user,
        lambda options: {"user": options["user"]},
        Sent,
        show_sent,
        newer=True,
        command="unblock",
    ),
    _Row(
        "blocked_users",
        "List the blocked users.",
        add_nothing,
        _nothing,
        Blocked,
        show_blocked,
        newer=True,
        command="blocked",
    ),
    _Row(
        "unsubscribe",
        "End a user's subscription to a channel, or to all channels.",
        add_user_and_channel,
        lambda options: {"user": options["user"], "channel": options["channel"]},
        Sent,
        show_sent,
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
    result = _call(options, row.method, row.params(options), newer=row.newer)
    decoded = None if row.shape is None else msgspec.json.decode(result, type=row.shape)
    return Answer(row.show(decoded), Raw(result), failure_of(decoded), missing_of(decoded))


SUB_COMMANDS = tuple(
    SubCommand(
        row.command or row.method, row.help, partial(_add_arguments, row), partial(_run, row)
    )
    for row in _ROWS
)
