"""Rules: what a connection of one generation does and one of another does not.

The form of messages is a matter of codecs. Whatever else differs between generations stands here,
and handlers ask these rules, never for a number. A connection gets its rules together with its
codec.

docs/protocol.md, 16.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from realtime.errors import (
    BadRequest,
    Disconnect,
    DisconnectBadRequest,
    DisconnectInsufficientState,
    DisconnectInvalidToken,
    Error,
    LimitExceeded,
    NotAvailable,
    PermissionDenied,
)
from realtime.protocol.codec import Codec


class Rules(Struct, frozen=True, gc=False):
    """The behaviour of one generation. The defaults are those of the first one."""

    # the connection
    may_connect_again: bool = True
    """After an error reply to connect, the client may try again. Otherwise nothing more is read
    from it, and it is closed as stale."""
    subscribes_as_asked: bool = False
    """Connect also subscribes to channels that its `subs` names, if the client might subscribe to
    them itself."""
    limits_server_side: bool = False
    """`client_channel_limit` counts the subscriptions that connect makes."""
    other_channels: type[Disconnect] | None = None
    """What refresh with a token of other server-side channels leads to; None: nothing."""

    answers: bool = True
    """The client sends something after connect: pongs, and commands."""

    # commands
    duplicate_first: bool = False
    """A second subscription to a channel is refused before the number of channels is."""
    too_long: type[LimitExceeded] | type[BadRequest] = LimitExceeded
    """What a channel name that is too long leads to."""
    no_data: type[Error] | type[Disconnect] = DisconnectBadRequest
    """What publish without data leads to."""
    hidden: type[NotAvailable] | type[PermissionDenied] = NotAvailable
    """What asking for presence or history leads to where no client may have it."""
    insecure_reads: bool = False
    """With `client_insecure` every client may read presence and history."""
    limits_history: bool = False
    """A client gets `client_history_max_publication_limit` publications of history at most."""

    # subscription tokens
    any_channel_takes_token: bool = False
    """A subscription token decides alone, whatever the channel. Otherwise private channels take
    one, and other channels hand it to the site's hook."""
    absent_is_anonymous: bool = False
    """A subscription token without a user is for anonymous clients, as a connection token is.
    Otherwise it is for the client that it names, and without one for nobody."""
    wrong_token: type[Error] | type[Disconnect] = PermissionDenied
    """What subscribe with the token of another user, client or channel leads to."""

    # subscriptions
    unsubscribes: bool = False
    """A subscription that cannot go on, because it has expired or lost its position, ends with a
    code that lets the client subscribe again. Otherwise, and where it is a server-side one, the
    connection ends."""
    asks: bool = False
    """Position, recovery, joins and leaves: a client gets what is forced, or what it asks for and
    may have. Otherwise it gets what the channel has."""
    own_leave: bool = True
    """A client may get its own leave."""
    empty_epoch_matches: bool = False
    """A position without an epoch is one of the present stream."""


FIRST = Rules()

SECOND = Rules(
    may_connect_again=False,
    subscribes_as_asked=True,
    limits_server_side=True,
    other_channels=DisconnectInsufficientState,
    duplicate_first=True,
    too_long=BadRequest,
    no_data=BadRequest,
    hidden=PermissionDenied,
    insecure_reads=True,
    limits_history=True,
    any_channel_takes_token=True,
    absent_is_anonymous=True,
    wrong_token=DisconnectInvalidToken,
    unsubscribes=True,
    asks=True,
    own_leave=False,
    empty_epoch_matches=True,
)

UNIDIRECTIONAL = replace(SECOND, answers=False)

LISTENING = replace(UNIDIRECTIONAL, unsubscribes=False, limits_server_side=False)
"""Of a listener: what it cannot go on with ends the response, and it comes back with its ID."""

_RULES: Mapping[int, Rules] = {1: FIRST, 2: SECOND}


def rules_of(codec: Codec) -> Rules:
    """Return the rules of a connection that speaks a codec."""
    return UNIDIRECTIONAL if codec.unidirectional else _RULES[codec.generation]
