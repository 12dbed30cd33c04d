"""The codes of the second generation: how a connection closes, and what replaces an error.

Clients decide by the number of a close code alone: 3000 to 3499 and 4000 to 4499 mean "come back",
3500 to 3999 and 4500 to 4999 mean "stay away". Some numbers of the first generation mean the
opposite here, so each disconnect has a row of its own.

docs/protocol.md, 15.6.
"""

from __future__ import annotations

from collections.abc import Mapping

from realtime import errors
from realtime.errors import Disconnect, Error

CLOSES: Mapping[type[Disconnect], tuple[int, str]] = {
    errors.DisconnectShutdown: (3001, "shutdown"),
    errors.DisconnectServerError: (3004, "internal server error"),
    errors.DisconnectExpired: (3005, "connection expired"),
    errors.DisconnectSubscriptionExpired: (3006, "subscription expired"),
    errors.DisconnectSlow: (3008, "slow"),
    errors.DisconnectInsufficientState: (3010, "insufficient state"),
    errors.DisconnectNoPong: (3012, "no pong"),
    errors.DisconnectTooManyRequests: (3013, "too many requests"),
    errors.DisconnectInvalidToken: (3500, "invalid token"),
    errors.DisconnectBadRequest: (3501, "bad request"),
    errors.DisconnectStale: (3502, "stale"),
    errors.DisconnectForced: (3503, "force disconnect"),
    errors.DisconnectConnectionLimit: (3504, "connection limit"),
    errors.DisconnectChannelLimit: (3505, "channel limit"),
    errors.DisconnectPermissionDenied: (3507, "permission denied"),
    errors.DisconnectMessageTooBig: (1009, ""),
}
"""Disconnect → close code and close reason."""

HALF = 500
"""Each thousand of close codes has two halves of this size: come back, stay away."""

_MESSAGES: Mapping[type[Error], str] = {errors.NamespaceNotFound: "unknown channel"}
"""Errors with another text than in the first generation."""

_REFUSALS: Mapping[int, type[Disconnect]] = {
    errors.PermissionDenied.code: errors.DisconnectPermissionDenied,
    errors.TokenExpired.code: errors.DisconnectExpired,
    errors.Expired.code: errors.DisconnectExpired,
    errors.TooManyRequests.code: errors.DisconnectTooManyRequests,
}


def closing(disconnect: Disconnect) -> tuple[int, str]:
    """Return close code and close reason.

    The code of a site, or of its endpoint, is moved where it says what `reconnect` says:
    4001 becomes 4501 if the client must not come back.
    """
    row = CLOSES.get(type(disconnect))
    if row is not None:
        return row
    thousand = 3000 if disconnect.code < 4000 else 4000
    code = thousand + disconnect.code % HALF + (0 if disconnect.reconnect else HALF)
    return code, disconnect.reason


def message_of(error: Error) -> str:
    """Return the text of an error."""
    return _MESSAGES.get(type(error), error.message)


def refusal(error: Error) -> Disconnect:
    """Return what ends a connection that has no replies, when its connect command failed."""
    return _REFUSALS.get(error.code, errors.DisconnectServerError)()
