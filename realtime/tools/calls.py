"""publish, channels, info and the other methods of the server API, as sub-commands.

With a shared engine they run in this process; with `--url` they are sent to the running service
over HTTP. The result is that of the server API in either case.

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
from realtime.server_api.results import ErrorBody
from realtime.serving import serving
from realtime.tools.base import CommandResult, Options, SubCommand
from realtime.tools.call_arguments import (
    CHANNEL,
    CHANNEL_OR_ALL,
    CHANNELS,
    HISTORY,
    KEY,
    PUBLICATION,
    PUT,
    SECONDS,
    STATE,
    USER,
    Argument,
    params_of,
)
from realtime.tools.remote import Remote, Unreachable, add_url_arguments, explain_api
from realtime.tools.results import (
    failure_of,
    missing_of,
    show_blocked,
    show_broadcast,
    show_change,
    show_channels,
    show_done,
    show_history,
    show_info,
    show_position,
    show_presence,
    show_sent,
    show_state,
    show_stats,
)

NOT_HERE = (
    "With the memory engine, only the process that serves clients can do this. Send it there,"
    " for example with --url http://127.0.0.1:8000, or use Redis or PostgreSQL (options redis_url"
    " and engine)."
)


# calling the service


def _call(row: _Row, options: Options) -> bytes:
    """Call a method and return its result as JSON.

    Raises:
        Error: the service refuses the call.
        EngineUnavailable: The engine does not answer.
        CommandError: the service cannot be reached.
    """
    encoded = msgspec.json.encode(params_of(options, row.api.shape.__struct_fields__))
    if options["url"]:
        remote = Remote(options["url"], options["timeout"])
        return call_remote(remote, row.method, encoded, newer=row.newer)
    try:
        if row.newer:
            return serving.call(lambda member: methods_v2.run(member, row.method, encoded))
        number = methods.METHOD_NUMBERS[row.method]
        return serving.call(lambda member: methods.run(member, number, encoded))
    except NotServing:
        raise CommandError(NOT_HERE) from None


class _Reply(Struct):
    result: Raw = Raw(b"{}")
    error: ErrorBody | None = None


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
    """One method: its arguments, and the layout of its result.

    newer: whether it is one of `POST /api/<method>`.
    command: the name of the sub-command, where it is not that of the method.
    """

    method: str
    help: str
    arguments: tuple[Argument, ...]
    show: Callable[[Any], str]
    newer: bool = False
    command: str = ""

    @property
    def api(self) -> methods_v2.Row[Any, Any]:
        """The method in the table of the server API, which has its params and its result."""
        if self.newer:
            return methods_v2.METHODS[self.method]
        return methods.METHODS[methods.METHOD_NUMBERS[self.method]]


_ROWS = (
    _Row("publish", "Publish into a channel.", (CHANNEL, *PUBLICATION), show_position, True),
    _Row(
        "broadcast",
        "Publish the same data into several channels.",
        (CHANNELS, *PUBLICATION),
        show_broadcast,
        True,
    ),
    _Row("channels", "List the channels that have a subscriber.", (), show_channels),
    _Row(
        "presence",
        "Show the clients that are subscribed to a channel.",
        (CHANNEL,),
        show_presence,
    ),
    _Row(
        "presence_stats",
        "Count the clients and users that are subscribed to a channel.",
        (CHANNEL,),
        show_stats,
    ),
    _Row(
        "history",
        "Show the publications that a channel keeps, oldest first.",
        HISTORY,
        show_history,
        True,
    ),
    _Row("history_remove", "Remove the publications that a channel keeps.", (CHANNEL,), show_done),
    _Row("map_publish", "Put the data of a key into a map.", PUT, show_change, True),
    _Row("map_remove", "Remove a key of a map.", (CHANNEL, KEY), show_change, True),
    _Row("map_read_state", "Show the entries of a map, by key.", STATE, show_state, True),
    _Row("map_clear", "Remove all keys of a map.", (CHANNEL,), show_done, True),
    _Row("info", "List the processes that serve clients.", (), show_info),
    _Row(
        "disconnect",
        "Close all connections of a user; their clients do not reconnect.",
        (USER,),
        show_sent,
    ),
    _Row(
        "block_user",
        "Close all connections of a user, and refuse new ones for some seconds.",
        (USER, SECONDS),
        show_sent,
        True,
        "block",
    ),
    _Row("unblock_user", "Let a blocked user connect again.", (USER,), show_sent, True, "unblock"),
    _Row("blocked_users", "List the blocked users.", (), show_blocked, True, "blocked"),
    _Row(
        "unsubscribe",
        "End a user's subscription to a channel, or to all channels.",
        (USER, CHANNEL_OR_ALL),
        show_sent,
    ),
)


def _add_arguments(row: _Row, parser: CommandParser) -> None:
    for argument in row.arguments:
        argument.add(parser)
    add_url_arguments(
        parser,
        "send it to the running site at this address, with the configured api_key;"
        " needed with the memory engine",
    )


def _run(row: _Row, options: Options) -> CommandResult:
    result = _call(row, options)
    decoded = msgspec.json.decode(result, type=row.api.result)
    return CommandResult(row.show(decoded), Raw(result), failure_of(decoded), missing_of(decoded))


SUB_COMMANDS = tuple(
    SubCommand(
        row.command or row.method, row.help, partial(_add_arguments, row), partial(_run, row)
    )
    for row in _ROWS
)
