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

    def __init_subclass__(cls, code: int | None = None, message: str = "") -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code, cls.message = code, message

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


class InternalError(Error, code=100, message="internal server error"):
    """The engine or code of the site failed. The log has the traceback."""


class NamespaceNotFound(Error, code=102, message="namespace not found"):
    """The channel names a namespace that is not configured."""


class PermissionDenied(Error, code=103, message="permission denied"):
    """The channel's options do not allow this, or not to this user."""


class MethodNotFound(Error, code=104, message="method not found"):
    """The command names a method that does not exist."""


class AlreadySubscribed(Error, code=105, message="already subscribed"):
    """The connection is subscribed to this channel already."""


class LimitExceeded(Error, code=106, message="limit exceeded"):
    """The channel name is too long, or the connection has too many channels."""


class BadRequest(Error, code=107, message="bad request"):
    """Params are missing or malformed, where that is not a reason to disconnect."""


class NotAnObject(BadRequest, ValueError):
    """`publication_data_format` wants a JSON object, and the data are another value."""

    message = "bad request: the data must be a JSON object"


class NotAvailable(Error, code=108, message="not available"):
    """The feature is off for this channel, or for clients."""


class TokenExpired(Error, code=109, message="token expired"):
    """The token is expired, or not valid yet. The client fetches a new one."""


class Expired(Error, code=110, message="expired"):
    """An expiry time given without a token lies in the past."""


class TooManyRequests(Error, code=111, message="too many requests"):
    """The client sends more commands than it may."""


class UnrecoverablePosition(Error, code=112, message="unrecoverable position"):
    """The position is of another epoch, so nothing can be read from there."""


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

    def __init_subclass__(
        cls, code: int | None = None, reason: str = "", reconnect: bool = True
    ) -> None:
        if code is not None:
            cls.code, cls.reason, cls.reconnect = code, reason, reconnect
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


class DisconnectInvalidToken(Disconnect, code=3002, reason="invalid token", reconnect=False):
    """A token is malformed, has a wrong signature, or names another client or channel."""


class DisconnectBadRequest(Disconnect, code=3003, reason="bad request", reconnect=False):
    """A frame cannot be decoded, or a command violates the protocol."""


class DisconnectServerError(Disconnect, code=3004, reason="internal server error"):
    """The engine failed during connect or subscribe, or a reply could not be encoded."""


class DisconnectExpired(Disconnect, code=3005, reason="expired"):
    """The connection was not refreshed in time."""


class DisconnectSubscriptionExpired(Disconnect, code=3006, reason="subscription expired"):
    """A subscription was not refreshed in time."""


class DisconnectStale(Disconnect, code=3007, reason="stale", reconnect=False):
    """No successful connect command within `client_stale_close_delay`."""


class DisconnectSlow(Disconnect, code=3008, reason="slow"):
    """Unsent bytes exceed `client_queue_max_size`."""


class DisconnectInsufficientState(Disconnect, code=3010, reason="insufficient state"):
    """A publication is missing that history cannot give. The client reconnects and recovers."""


class DisconnectForced(Disconnect, code=3012, reason="force disconnect", reconnect=False):
    """The server API disconnected this user."""


class DisconnectConnectionLimit(Disconnect, code=3013, reason="connection limit", reconnect=False):
    """The user has too many connections, or a newer one where only one is allowed."""


class DisconnectMessageTooBig(Disconnect, code=1009, reason="message too big"):
    """A frame is larger than `websocket_message_size_limit`. The close reason is empty."""


DisconnectMessageTooBig.advice = ""


class DisconnectShutdown(Disconnect, code=3001, reason="shutdown"):
    """The node stops. Another one accepts the client, or this one after its restart."""


DISCONNECTS = tuple(Disconnect.__subclasses__())
"""One per code of the first generation. `protocol.v2.codes` has the table of the second."""


# only clients of the second generation get these; the codes are the nearest of the first


class DisconnectNoPong(Disconnect, code=3009, reason="no pong"):
    """The client did not answer a ping within `pong_timeout`."""


class DisconnectTooManyRequests(Disconnect, code=3008, reason="too many requests"):
    """The client sends more than it may."""


class DisconnectChannelLimit(Disconnect, code=3013, reason="channel limit", reconnect=False):
    """The client would have more server-side subscriptions than `client_channel_limit`."""


class DisconnectPermissionDenied(
    Disconnect, code=3003, reason="permission denied", reconnect=False
):
    """The client may not connect."""


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
