"""What nodes write to each other about SockJS sessions.

A balancer may send each request to another node. The node that has the session is its owner;
one that has a request for it acts for the owner.

    acting node                                   owner
    Attach   ─────────────────────────────────►   a receiver of the session
             ◄─────────────────────────────────   Written: frames for the response
    Watch    ──────── every few seconds ───────►  both learn whether the other is there
             ◄─────────────────────────────────   Check: is this receiver there?
    Detach   ─────────────────────────────────►   its peer has gone, or missed something
    Release  ─────────────────────────────────►   end it in order, this node is about to end
    Deliver  ─────────────────────────────────►   frames of the client
"""

from __future__ import annotations

import msgspec

SUBJECT = "sockjs"


class Attach(msgspec.Struct, frozen=True, tag="attach", array_like=True):
    """Question: have this receiver take the frames of a session. The answer is a bool."""

    session: str
    receiver: int
    """Its number at the acting node."""
    limit: int
    """Bytes of frames after which it is full; 0: after one frame."""


class Watch(msgspec.Struct, frozen=True, tag="watch", array_like=True):
    """Question: is this receiver still the one of the session? The answer is a bool."""

    session: str
    receiver: int


class Detach(msgspec.Struct, frozen=True, tag="detach", array_like=True):
    """What a receiver was given did not reach its peer, or may not have."""

    session: str
    receiver: int


class Release(msgspec.Struct, frozen=True, tag="release", array_like=True):
    """The acting node is about to end: end the response in order."""

    session: str
    receiver: int


class Deliver(msgspec.Struct, frozen=True, tag="deliver", array_like=True):
    """Question: take these frames of the client. The answer is a bool."""

    session: str
    frames: list[str]


class Written(msgspec.Struct, frozen=True, tag="written", array_like=True):
    """SockJS frames for a receiver."""

    receiver: int
    number: int
    """Counts them from 0: what is missing is noticed."""
    frames: list[str]
    last: bool


class Check(msgspec.Struct, frozen=True, tag="check", array_like=True):
    """Question: is this receiver there? The answer is a bool."""

    receiver: int


Letter = Attach | Watch | Detach | Release | Deliver | Written | Check

_decoder: msgspec.json.Decoder[Letter] = msgspec.json.Decoder(Letter)
encode = msgspec.json.encode

YES, NO = b"true", b"false"


def decode(body: bytes) -> Letter:
    """Raises msgspec.DecodeError: another version of this service writes."""
    return _decoder.decode(body)
