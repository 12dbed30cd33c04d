"""Error and Disconnect: everything the service can refuse, in two tables.

Exception
├── Error                        a failed command; the connection stays open
│   └── one class per code (table `ERRORS`)
├── Disconnect                   a closed connection, with advice for the client
│   └── one class per code (table `DISCONNECTS`)
├── NotServing                   this process has no clients to reach
└── EngineUnavailable            Redis did not do what was asked of it

A handler raises; one place per surface decides what that means: `client.py` turns an
`Error` into a reply and a `Disconnect` into a close, `server_api` turns an `Error` into
the field `error` of a reply with HTTP status 200.

Classes rather than shared instances, because raising the same instance twice would keep
the frames of both tracebacks alive.

Spec: Errors; Disconnect advice.
"""

from __future__ import annotations

import json

CLOSE_REASON_MAX_BYTES = 123
"""Room for the reason in a WebSocket close frame (RFC 6455, 5.5)."""


class Error(Exception):
    """A command failed. `code` is an integer, `message` a short English text.

    Raise a subclass for the codes of the specification; construct `Error` itself only for
    codes of the application (1000 and above).
    """

    code: int = 100
    message: str = "internal server error"

    def __init__(self, code: int | None = None, message: str | None = None) -> None:
        """
        Raises:
            TypeError, ValueError: code or message could not be sent.
        """
        if code is not None:
            if not isinstance(code, int):
                raise TypeError(f"the code of an error is an integer, not {code!r}")
            if not 0 <= code < 2**32:
                raise ValueError(f"{code} is no code of an error")
            self.code = code
        if message is not None:
            if not isinstance(message, str):
                raise TypeError(f"the message of an error is text, not {message!r}")
            self.message = message
        super().__init__(self.code, self.message)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class InternalError(Error):
    """The engine, or code of the site, failed. The log has the traceback."""

    code, message = 100, "internal server error"


class NamespaceNotFound(Error):
    """The channel names a namespace that is not configured."""

    code, message = 102, "namespace not found"


class PermissionDenied(Error):
    """The channel's options or the user's identity do not allow this."""

    code, message = 103, "permission denied"


class MethodNotFound(Error):
    """The command's method is an integer outside the table of methods."""

    code, message = 104, "method not found"


class AlreadySubscribed(Error):
    """The connection is subscribed to this channel already."""

    code, message = 105, "already subscribed"


class LimitExceeded(Error):
    """The channel name is too long, or the connection has too many channels."""

    code, message = 106, "limit exceeded"


class BadRequest(Error):
    """Parameters are missing or malformed, where that is no reason to disconnect."""

    code, message = 107, "bad request"


class NotAvailable(Error):
    """The feature is off for this channel (or for clients)."""

    code, message = 108, "not available"


class TokenExpired(Error):
    """`exp` or `nbf` of a token is not satisfied. The client fetches a new one."""

    code, message = 109, "token expired"


class Expired(Error):
    """An expiry time given without a token lies in the past."""

    code, message = 110, "expired"


ERRORS: tuple[type[Error], ...] = (
    InternalError,
    NamespaceNotFound,
    PermissionDenied,
    MethodNotFound,
    AlreadySubscribed,
    LimitExceeded,
    BadRequest,
    NotAvailable,
    TokenExpired,
    Expired,
)


class Disconnect(Exception):
    """The connection is closed with `code`; `advice` travels in the close reason.

    `reconnect` tells the client whether trying again makes sense.

    Raise a subclass for the codes of the specification; construct `Disconnect` itself only
    for codes of the application (4000 to 4999).
    Spec: Disconnect advice.
    """

    code: int = 3000
    reason: str = "normal"
    reconnect: bool = True
    advice: str

    def __init_subclass__(cls) -> None:
        cls.advice = _advice(cls.reason, cls.reconnect)

    def __init__(self, code: int | None = None, reason: str = "", reconnect: bool = False) -> None:
        """Args are for codes of the application; subclasses know theirs.

        Raises:
            ValueError: the code is none a close frame may carry, or the reason is too long.
        """
        if code is not None:
            if not 3000 <= code <= 4999:
                raise ValueError(f"{code} is no close code of an application (4000 to 4999)")
            self.code, self.reason, self.reconnect = code, reason, reconnect
            self.advice = _advice(reason, reconnect)
        super().__init__(self.code, self.reason)

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"


def _advice(reason: str, reconnect: bool) -> str:
    """The close reason: compact JSON, keys in this order, short enough for a close frame."""
    text = json.dumps({"reason": reason, "reconnect": reconnect}, separators=(",", ":"))
    if len(text.encode()) > CLOSE_REASON_MAX_BYTES:
        raise ValueError(f"close reason {reason!r} does not fit a close frame")
    return text


Disconnect.advice = _advice(Disconnect.reason, Disconnect.reconnect)


class DisconnectInvalidToken(Disconnect):
    """A token is not a token, is signed wrongly, or names another client or channel."""

    code, reason, reconnect = 3002, "invalid token", False


class DisconnectBadRequest(Disconnect):
    """A frame cannot be decoded, or a command violates the protocol."""

    code, reason, reconnect = 3003, "bad request", False


class DisconnectServerError(Disconnect):
    """The engine failed during connect or subscribe, or a reply could not be encoded."""

    code, reason, reconnect = 3004, "internal server error", True


class DisconnectExpired(Disconnect):
    """The connection was not refreshed in time."""

    code, reason, reconnect = 3005, "expired", True


class DisconnectSubscriptionExpired(Disconnect):
    """A subscription was not refreshed in time."""

    code, reason, reconnect = 3006, "subscription expired", True


class DisconnectStale(Disconnect):
    """No successful connect command within `client_stale_close_delay`."""

    code, reason, reconnect = 3007, "stale", False


class DisconnectSlow(Disconnect):
    """Unsent bytes exceed `client_queue_max_size`."""

    code, reason, reconnect = 3008, "slow", True


class DisconnectInsufficientState(Disconnect):
    """A publication is missing and history cannot give it; the client recovers by reconnecting."""

    code, reason, reconnect = 3010, "insufficient state", True


class DisconnectForced(Disconnect):
    """The server API asked for this user to be disconnected."""

    code, reason, reconnect = 3012, "force disconnect", False


class DisconnectConnectionLimit(Disconnect):
    """The user has another connection, or too many of them."""

    code, reason, reconnect = 3013, "connection limit", False


class DisconnectMessageTooBig(Disconnect):
    """A frame is larger than `websocket_message_size_limit`. The close reason is empty."""

    code, reason, reconnect = 1009, "message too big", True


DisconnectMessageTooBig.advice = ""


class DisconnectShutdown(Disconnect):
    """The node stops; another one (or the same after its restart) will answer."""

    code, reason, reconnect = 3001, "shutdown", True


DISCONNECTS: tuple[type[Disconnect], ...] = (
    DisconnectShutdown,
    DisconnectInvalidToken,
    DisconnectBadRequest,
    DisconnectServerError,
    DisconnectExpired,
    DisconnectSubscriptionExpired,
    DisconnectStale,
    DisconnectSlow,
    DisconnectInsufficientState,
    DisconnectForced,
    DisconnectConnectionLimit,
    DisconnectMessageTooBig,
)


class NotServing(RuntimeError):
    """No node of this service can be reached from here.

    With the memory engine, clients are known only to the process that serves them. Publish
    from that process, or send the command to its `/api`.
    """


class EngineUnavailable(ConnectionError):
    """Redis did not do what was asked of it: away, too slow, or refusing.

    What was asked for may have happened all the same when the answer did not come in time.
    The text names the server and the reason, never a password.
    """
