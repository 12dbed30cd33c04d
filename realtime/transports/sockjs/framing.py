"""SockJS frames: how messages of the protocol are written where WebSocket does not get through.

    o               the session is open
    h               heartbeat
    a["..","..."]   messages; each is one frame of the protocol
    c[code,"..."]   the session is closed

See SockJS protocol 0.3.4, "Framing and connection state".
"""

from __future__ import annotations

import re

import msgspec

from realtime.payload import replace_lone_surrogates
from realtime.protocol.frames import Frame
from realtime.transports.emulation.session import Framing

OPEN = b"o"
HEARTBEAT = b"h"

_UNSAFE = re.compile(
    "[\x7f-\x9f\u00ad\u0600-\u0604\u070f\u17b4\u17b5\u200c-\u200f\u2028-\u202f\u2060-\u206f"
    "\ufeff\ufff0-\uffff]"
)
"""Characters that some browsers change or drop on the way; all are below U+10000."""

_REPLY = re.compile(rb"[^\n]+\n?")

_text_decoder = msgspec.json.Decoder(str | list[str])


def messages(*frames: bytes) -> bytes:
    """Return the SockJS frame that carries frames of the protocol."""
    text = msgspec.json.encode([frame.decode() for frame in frames])
    if not text.isascii() or 0x7F in text:
        unicode = text.decode()
        text = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", unicode).encode()
    return b"a" + text


def replies(frame: Frame) -> bytes:
    """Return the SockJS frame for a frame of the protocol, with one message per reply in it.

    When a chunk of a response has several SockJS frames, centrifuge-js takes a message before
    it has finished one with several replies, and publications change places.
    """
    return messages(*_REPLY.findall(frame.data))


def close(code: int, reason: str) -> bytes:
    """Return the last SockJS frame of a session."""
    return b"c" + msgspec.json.encode([code, reason])


SOCKJS = Framing("sockjs", OPEN, HEARTBEAT, replies, close)


MAX_MESSAGES = 10_000
"""Messages in one request. Each takes time, however small it is."""


class TooLarge(ValueError):
    """A frame is larger than clients may send, or there are more than `MAX_MESSAGES`."""


def decode(body: bytes, frame_limit: int | None = None) -> list[bytes]:
    """Return the frames of the protocol that a client sent.

    Args:
        body: a JSON array of strings, or one string.
        frame_limit: largest frame in bytes; None for no limit.

    Raises:
        ValueError: it is neither.
        TooLarge: a frame is too large, or there are too many.
    """
    try:
        try:
            content = _text_decoder.decode(body)
        except msgspec.DecodeError:
            content = _text_decoder.decode(replace_lone_surrogates(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("neither strings nor a string in JSON") from None
    texts = [content] if isinstance(content, str) else content
    if len(texts) > MAX_MESSAGES:
        raise TooLarge("too many messages")
    frames = [text.encode() for text in texts]
    if frame_limit is not None and any(len(frame) > frame_limit for frame in frames):
        raise TooLarge("too large a message")
    return frames
