"""Errors and disconnects: how the service refuses, in two tables.

Exception
├── Error                        a command failed; the connection stays open
│   └── one class per code (table `ERRORS`)
├── Disconnect                   the connection is closed, with advice for the client
│   └── one class per code (table `DISCONNECTS`)
├── NotServing                   this process serves no clients, so it cannot reach any
└── EngineUnavailable            the engine is away, too slow, or refuses: the command was not run
    └── NoReply                  the command may have been run

Handlers raise them. One place per surface decides what that means: `clients.dispatch` turns an
`Error` into a reply and a `Disconnect` into a close; `server_api` turns an `Error` into the field
`error` of a reply with HTTP status 200.

There is a class per code, and no shared instances: an instance raised twice would keep the frames
of both tracebacks alive.

docs/protocol.md, 5.
"""

from __future__ import annotations

import json

FIRST_SITE_CODE = 1000
"""Codes below it belong to the protocol, and clients know what they mean."""

TEMPORARY_CODES = frozenset((100, 111))
"""Errors of the protocol that may be gone when the client tries again."""

CLOSE_REASON_MAX_BYTES = 123
"""Bytes a reason may have in a WebSocket close frame (RFC 6455, 5.5)."""


class Error(Exception):
    """A command failed. `code` is an integer, `message` a short English text.

    Raise a subclass for the codes of the protocol. Construct `Error` itself for codes of a site,
    which begin at 1000.
    """

    code: int = 100
    message: str = "internal server error"
    temporary: bool
    """Whether clients of the second generation try again by themselves."""

    def __init__(
        self, code: int | None = None, message: str | None = None, temporary: bool = False
    ) -> None:
        """
        Raises:
            TypeError: the code is not an integer, or the message is not a string.
            ValueError: the code is not between 1000 and 4294967295.
        """
        if code is not None:
            if not isinstance(code, int):
                raise TypeError(f"error code must be an integer, not {code!r}")
            if not FIRST_SITE_CODE <= code < 2**32:
                raise ValueError(f"error codes of a site begin at {FIRST_SITE_CODE}, not {code}")
            self.code = code
        if message is not None:
            if not isinstance(message, str):
                raise TypeError(f"error message must be a string, not {message!r}")
            self.message = _characters(message)
        self.temporary = temporary or self.code in TEMPORARY_CODES
        super().__init__(self.code, self.message)

    @classmethod
    def received(cls, code: int, message: str, temporary: bool = False) -> Error:
        """Return an error that another process answered with, whatever its code."""
        error = cls(message=message)
        error.code, error.args = code, (code, message)
        error.temporary = temporary or code in TEMPORARY_CODES
        return error

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class InternalError(Error):
    """The engine or code of the site failed. The log has the traceback."""

    code, message = 100, "internal server error"


class NamespaceNotFound(Error):
    """The channel names a namespace that is not configured."""

    code, message = 102, "namespace not found"


class PermissionDenied(Error):
    """The channel's options do not allow this, or not to this user."""

    code, message = 103, "permission denied"


class MethodNotFound(Error):
    """The command names a method that does not exist."""

    code, message = 104, "method not found"


class AlreadySubscribed(Error):
    """The connection is subscribed to this channel already."""

    code, message = 105, "already subscribed"


class LimitExceeded(Error):
    """The channel name is too long, or the connection has too many channels."""

    code, message = 106, "limit exceeded"


class BadRequest(Error):
    """Params are missing or malformed, where that is not a reason to disconnect."""

    code, message = 107, "bad request"


class NotAnObject(BadRequest, ValueError):
    """`publication_data_format` wants a JSON object, and the data are another value."""

    message = "bad request: the data must be a JSON object"


class NotAvailable(Error):
    """The feature is off for this channel, or for clients."""

    code, message = 108, "not available"


class TokenExpired(Error):
    """The token is expired, or not valid yet. The client fetches a new one."""

    code, message = 109, "token expired"


class Expired(Error):
    """An expiry time given without a token lies in the past."""

    code, message = 110, "expired"


class TooManyRequests(Error):
    """The client sends more commands than it may."""

    code, message = 111, "too many requests"


class UnrecoverablePosition(Error):
    """The position is of another epoch, so nothing can be read from there."""

    code, message = 112, "unrecoverable position"


ERRORS = tuple(Error.__subclasses__())
"""One per code."""


class Disconnect(Exception):
    """The connection is closed with `code`. The close reason carries `advice`.

    `reconnect` advises the client whether to connect again.

    Raise a subclass for the codes of the protocol. Construct `Disconnect` itself for codes of a
    site, which are 4000 to 4999.
    """

    code: int = 3000
    reason: str = "normal"
    reconnect: bool = True
    advice: str

    def __init_subclass__(cls) -> None:
        cls.advice = _advice(cls.reason, cls.reconnect)

    def __init__(self, code: int | None = None, reason: str = "", reconnect: bool = False) -> None:
        """Give arguments for the codes of a site. Subclasses know theirs.

        A reason that does not fit into a close frame is cut behind a character.

        Raises:
            TypeError: the code is not an integer.
            ValueError: the code is not between 4000 and 4999.
        """
        if code is not None:
            if not isinstance(code, int):
                raise TypeError(f"close code must be an integer, not {code!r}")
            if not 4000 <= code <= 4999:
                raise ValueError(f"close codes of a site are 4000 to 4999, not {code}")
            self._set(code, fitting(reason, reconnect), reconnect)
        super().__init__(self.code, self.reason)

    def _set(self, code: int, reason: str, reconnect: bool) -> None:
        reason = _characters(reason)
        self.code, self.reason, self.reconnect = code, reason, reconnect
        self.advice = _advice(reason, reconnect)

    @classmethod
    def received(cls, code: int, reason: str, reconnect: bool) -> Disconnect:
        """Return a disconnect that another process asked for, whatever its code.

        Raises:
            ValueError: the reason does not fit into a close frame.
        """
        disconnect = cls()
        disconnect._set(code, reason, reconnect)
        disconnect.args = (code, reason)
        return disconnect

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"


def fitting(reason: str, reconnect: bool) -> str:
    """Return as much of a reason as fits into a close frame of every generation."""
    reason = _characters(reason[:CLOSE_REASON_MAX_BYTES])
    while len(_written(reason, reconnect)) > CLOSE_REASON_MAX_BYTES:
        reason = reason[:-1]
    return reason


def _characters(text: str) -> str:
    """Return a text with U+FFFD in place of lone surrogates, which no message can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(reason: str, reconnect: bool) -> str:
    """Return the close reason of the first generation, which is ASCII."""
    return json.dumps({"reason": reason, "reconnect": reconnect}, separators=(",", ":"))


def _advice(reason: str, reconnect: bool) -> str:
    """Return the close reason: compact JSON with the keys in this order.

    Raises:
        ValueError: it does not fit into a close frame.
    """
    text = _written(reason, reconnect)
    if len(text) > CLOSE_REASON_MAX_BYTES:
        raise ValueError(f"close reason {reason!r} does not fit a close frame")
    return text


Disconnect.advice = _advice(Disconnect.reason, Disconnect.reconnect)


class DisconnectInvalidToken(Disconnect):
    """A token is malformed, has a wrong signature, or names another client or channel."""

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
    """A publication is missing that history cannot give. The client reconnects and recovers."""

    code, reason, reconnect = 3010, "insufficient state", True


class DisconnectForced(Disconnect):
    """The server API disconnected this user."""

    code, reason, reconnect = 3012, "force disconnect", False


class DisconnectConnectionLimit(Disconnect):
    """The user has too many connections, or a newer one where only one is allowed."""

    code, reason, reconnect = 3013, "connection limit", False


class DisconnectMessageTooBig(Disconnect):
    """A frame is larger than `websocket_message_size_limit`. The close reason is empty."""

    code, reason, reconnect = 1009, "message too big", True


DisconnectMessageTooBig.advice = ""


class DisconnectShutdown(Disconnect):
    """The node stops. Another one accepts the client, or this one after its restart."""

    code, reason, reconnect = 3001, "shutdown", True


DISCONNECTS = tuple(Disconnect.__subclasses__())
"""One per code of the first generation. `protocol.v2.codes` has the table of the second."""


# only clients of the second generation get these; the codes are the nearest of the first


class DisconnectNoPong(Disconnect):
    """The client did not answer a ping within `pong_timeout`."""

    code, reason, reconnect = 3009, "no pong", True


class DisconnectTooManyRequests(Disconnect):
    """The client sends more than it may."""

    code, reason, reconnect = 3008, "too many requests", True


class DisconnectChannelLimit(Disconnect):
    """The client would have more server-side subscriptions than `client_channel_limit`."""

    code, reason, reconnect = 3013, "channel limit", False


class DisconnectPermissionDenied(Disconnect):
    """The client may not connect."""

    code, reason, reconnect = 3003, "permission denied", False


class NotServing(RuntimeError):
    """This process serves no clients, and the memory engine reaches no other process.

    Publish from the process that serves them, or send the command to its `/api`.
    """


class EngineUnavailable(ConnectionError):
    """The engine is away, too slow, or refuses, and did not run the command; but see `NoReply`.

    The text names the server and the reason, never a password.
    """


class NoReply(EngineUnavailable):
    """The command was sent, and no reply came: the engine may have run it, or may still run it.

    Of several publications, some may have been published.
    """
