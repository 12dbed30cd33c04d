"""What daphne needs beyond ASGI: close reasons, the backlog of slow clients, an orderly stop, and
requests that decide less.

- daphne drops the `reason` of `websocket.close`, which carries the disconnect advice.
- daphne's `send` never waits and buffers without limit. Only its protocol knows how much a slow
  client has not read.
- daphne has no lifespan events. Its reactor has an event for its end.
- daphne takes in the whole body of any request, and lets clients name the path at which the site is
  mounted.
- daphne offers HTTP/2 where TLS ends at it and the package h2 is there. Twisted has other requests
  for it, to which none of this applies, and WebSockets do not work over it. So it is not offered.

`install` puts subclasses of daphne's WebSocket protocol and HTTP request into daphne
(`daphne_install`), if daphne is loaded and has everything that they need. Otherwise plain ASGI is
used, and `problem` returns the reason for the system check.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from realtime.transports.asgi import Headers, Send
from realtime.transports.sending import WebSocketTransport

if TYPE_CHECKING:
    from realtime.transports.servers.daphne_request import BodyRule, GuardedRequest

logger = logging.getLogger("realtime.daphne")

_SERVER = "daphne.server"

_NEEDED = (
    ("daphne.ws_protocol", "WebSocketFactory", ("protocol",)),
    (
        "daphne.ws_protocol",
        "WebSocketProtocol",
        (
            *("CONFIG_ATTRS", "STATE_OPEN", "_connectionMade", "_max_message_size_exceeded"),
            *("handle_reply", "sendCloseFrame", "sendMessage"),
        ),
    ),
    (
        "daphne.http_protocol",
        "WebRequest",
        ("connectionLost", "gotLength", "handleContentChunk", "process"),
    ),
    (_SERVER, "Server", ("kill_all_applications",)),
)
"""Module, class, and what our subclass uses of it."""

logs_failed_start = True
"""Whether to log why the service could not start with the reactor. In a worker, its
supervisor logs the reason."""

TOO_LARGE = "realtime.too_large"
"""Type of the event in place of a message that is larger than the limit."""


def is_loaded() -> bool:
    """Return whether daphne may be the server of this process."""
    return _SERVER in sys.modules


def problem() -> str | None:
    """Return why our protocols do not fit the installed daphne; None if they fit."""
    for module, kind, names in _NEEDED:
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            return f"daphne's protocols cannot be imported: {error}"
        for name in names:
            if not hasattr(getattr(loaded, kind, None), name):
                return f"daphne's {kind} has no {name}"
    return None


def install(
    rule: BodyRule | None = None,
    takes: Callable[[str], bool] | None = None,
    takes_api: Callable[[str], bool] | None = None,
) -> bool:
    """Use our protocols for daphne's connections. Return whether that was possible.

    Args:
        rule: decides about requests with a body before the body comes; None: keep the rule.
        takes: return whether a path is one of our WebSockets; None: keep the function.
        takes_api: return whether a path is one of the server API; None: keep the function.
    """
    if not is_loaded() or problem() is not None:
        return False
    # imported late: it loads daphne and Twisted
    from realtime.transports.servers import daphne_install

    daphne_install.install(rule, takes, takes_api, _started)
    return True


def _started(starting: asyncio.Future[Any]) -> None:
    if starting.cancelled() or (error := starting.exception()) is None:
        return
    if logs_failed_start:
        logger.warning("Could not start with daphne, retrying at the first request: %s", error)


def transport(
    send: Send, receiving: asyncio.Task[Any], size_limit: int | None
) -> WebSocketTransport | None:
    """Return the transport for daphne's own `send`; None for any other, or a wrapped one.

    Args:
        size_limit: largest incoming message in bytes; None for no limit.
    """
    protocol = _behind(send)
    if not hasattr(protocol, "write_frame"):
        return None
    protocol.limit_messages(size_limit, {"type": TOO_LARGE})
    made: WebSocketTransport = protocol.transport_for(send, receiving)
    return made


def refuse_with(send: Send, status: int, headers: Headers) -> None:
    """Set what the peer gets if its handshake is rejected; without effect on other servers.

    Args:
        send: daphne's own.
        status: of an error; with another one daphne's own stays.
    """
    protocol = _behind(send)
    if status >= 400 and hasattr(protocol, "refuse_with"):
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        protocol.refuse_with(status, HTTPStatus(status).phrase, fields)


def connection_of(send: Send) -> GuardedRequest | None:
    """Return the request behind daphne's own `send`; None for any other, or a wrapped one."""
    request: Any = _behind(send)
    return request if hasattr(request, "backlog_bytes") and hasattr(request, "abort") else None


def _behind(send: Send) -> Any:
    """Return what daphne's own `send` is of: a WebSocket or a request; None for any other."""
    return send.args[0] if isinstance(send, functools.partial) and send.args else None
