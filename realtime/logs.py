"""Fields of log records: what a record is about, for formatters that write JSON; and who sees them.

Every record of the service has all of `FIELDS` as attributes, so that a format may name them. Those
that a record is not about are None.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

FIELDS: Mapping[str, str] = {
    "client": "Client ID.",
    "user": "User ID; empty for anonymous users.",
    "channel": "Name of the channel.",
    "code": "Code of the error or the disconnect that the client gets.",
    "node": "Name of the process; always there.",
    "duration": "Seconds: how long the connection was open, or how long a call has taken.",
}
"""Name of a field → its meaning."""

LOGGERS = tuple(
    f"realtime.{name}"
    for name in (
        *("admin_panel", "answers", "api", "asgi", "client", "daphne", "engine", "hooks", "live"),
        *("logins", "monitoring", "node", "online", "outbox", "pages", "pending", "redis"),
        *("server_api", "supervisor", "tokens", "typed"),
    )
)
"""The loggers of the service."""


class Subject(Protocol):
    """A client, or what knows it."""

    @property
    def id(self) -> str: ...

    @property
    def user(self) -> str: ...


def of(client: Subject, **more: object) -> dict[str, object]:
    """Return the fields of a record about a client, as its `extra`.

    Args:
        more: further fields.
    """
    return {"client": client.id, "user": client.user, **more}


class _Fields(logging.Filter):
    """Gives every record all fields, and shows warnings and errors to those who watch.

    A handler could do the second. But where a site configures none, Python prints the records that
    found no handler; with one of ours they would vanish.
    """

    node = ""
    """The name of the node of this process; "" for the default."""
    watchers: tuple[Callable[[logging.LogRecord], None], ...] = ()

    def filter(self, record: logging.LogRecord) -> bool:
        for name in FIELDS:
            record.__dict__.setdefault(name, None)
        record.node = self.node or default_node_name()
        if record.levelno >= logging.WARNING:
            for watcher in self.watchers:
                watcher(record)
        return True


_fields = _Fields()


def install() -> None:
    """Give the records of all loggers of the service their fields."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_fields)


def watch(watcher: Callable[[logging.LogRecord], None]) -> None:
    """Show each record from WARNING on to a watcher, in the thread that logs. It must not raise."""
    _fields.watchers = (*_fields.watchers, watcher)


def unwatch(watcher: Callable[[logging.LogRecord], None]) -> None:
    """Show it none any more; unknown ones are ignored."""
    _fields.watchers = tuple(each for each in _fields.watchers if each != watcher)


def name_node(name: str) -> None:
    """Set the node of the records of this process; "" for the default."""
    _fields.node = name


def default_node_name() -> str:
    """Return the name of a node that the options do not name: that of this process."""
    return f"{socket.gethostname()}_{os.getpid()}"
