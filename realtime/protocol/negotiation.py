"""Negotiation: which codec a connection speaks, from what its handshake offers.

Query and subprotocols choose the format. The generation does not show in a handshake, unless the
query asks for one (`cf_protocol_version`): every connection starts with the first generation. The
second one is recognised by the first frame, before anything else of the connection depends on its
codec (`Client.codec` may be replaced until then).

docs/protocol.md, 15.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from realtime.payload import replace_lone_surrogates
from realtime.protocol.codec import Codec
from realtime.protocol.json_stream import Malformed, decode_stream
from realtime.protocol.protobuf_frames import split_frame
from realtime.protocol.v1 import client_pb2
from realtime.protocol.v1 import json as json_1
from realtime.protocol.v1 import protobuf as protobuf_1
from realtime.protocol.v2 import json as json_2
from realtime.protocol.v2 import protobuf as protobuf_2
from realtime.protocol.v2.commands import METHODS

SUBPROTOCOLS: Mapping[str, str] = {
    "centrifuge-protobuf": "protobuf",
    "centrifuge-json": "json",
}
"""Subprotocol a client may offer → format."""

_FORMAT_KEYS = ("format", "cf_protocol", "protocol")
_VERSION_KEY = "cf_protocol_version"
_VERSIONS: Mapping[str, int] = {"v1": 1, "v2": 2}

_REQUEST_KEYS = frozenset(str(method) for method in METHODS.values())
_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Agreement(NamedTuple):
    """The outcome of a handshake."""

    codec: Codec
    subprotocol: str | None
    """To return to the client; None if it offered none that is known."""
    is_final: bool = False
    """Whether the client asked for this generation; otherwise its first frame decides."""


class Codecs:
    """The codecs of a node. All clients that speak a codec share one object of it."""

    def __init__(self, use_offset: bool) -> None:
        """
        Args:
            use_offset: in the first generation, write positions as `offset`, and not as `seq` and
                `gen`.
        """
        self.json: Codec = json_1.JSONCodec(use_offset)
        self.protobuf: Codec = protobuf_1.ProtobufCodec(use_offset)
        self.json_2: Codec = json_2.JSONCodec()
        self.protobuf_2: Codec = protobuf_2.ProtobufCodec()
        self.unidirectional: Codec = json_2.UnidirectionalJSONCodec()
        """Of connections that only go down, where the URL says so and no frame decides."""

    def negotiate(self, query_string: bytes, offered: Sequence[str]) -> Agreement:
        """Choose the codec of a connection, until the first frame has come.

        Args:
            query_string: of the request, undecoded.
            offered: the subprotocols the client offers, in its order.

        Beyond the spec: an offered subprotocol of the client SDKs is returned, because clients
        that offer one refuse a handshake without it.
        """
        query = parse_qs(query_string.decode("latin-1"))
        asked = [query.get(key, [""])[0] for key in _FORMAT_KEYS]
        subprotocol = next((name for name in offered if name in SUBPROTOCOLS), None)
        binary = "protobuf" in asked or SUBPROTOCOLS.get(subprotocol or "") == "protobuf"
        generation = _VERSIONS.get(query.get(_VERSION_KEY, [""])[0])
        return Agreement(self.of(generation or 1, binary), subprotocol, generation is not None)

    def recognise(self, codec: Codec, frame: bytes) -> Codec:
        """Return the codec of the format of `codec` for a connection with this first frame."""
        return self.of(generation_of(frame, codec.binary), codec.binary)

    def of(self, generation: int, binary: bool) -> Codec:
        """Return the codec of a generation and a format."""
        if generation == 2:
            return self.protobuf_2 if binary else self.json_2
        return self.protobuf if binary else self.json


def generation_of(frame: bytes, binary: bool) -> int:
    """Return the generation that the first frame of a connection speaks: 1 or 2.

    Only its first command counts. Commands of the second generation name their method by a key (in
    Protobuf, by a field) that the first generation does not have. A frame that holds no command
    gets the answer of the first generation.

    Args:
        frame: whatever the client sent.
        binary: whether the format is Protobuf.
    """
    try:
        newer = _has_request_field(frame) if binary else _has_request_key(frame)
    except (ValueError, DecodeError):
        newer = False
    return 2 if newer else 1


def _has_request_key(frame: bytes) -> bool:
    fields = next(decode_stream(frame, _read_keys), ())
    return any(key in _REQUEST_KEYS or key.lower() in _REQUEST_KEYS for key in fields)


def _has_request_field(frame: bytes) -> bool:
    command = client_pb2.Command.FromString(next(split_frame(frame), b""))
    # the type stubs do not say that it can be iterated
    unknown: Iterable[Any] = UnknownFieldSet(command)  # type: ignore[assignment]
    return any(field.field_number in METHODS for field in unknown)


def _read_keys(text: bytes) -> Sequence[str]:
    """Return the keys of a JSON object.

    Raises:
        Malformed: the text is not one.
    """
    for spelling in (text, replace_lone_surrogates(text)):
        try:
            return tuple(_read_object(spelling))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    raise Malformed("not an object")
