"""Negotiation: which codec a connection speaks, from what its handshake offers.

Query and subprotocols choose the format. The generation does not show in a handshake: every
connection starts with the first one. A later generation is recognised by the first frame, before
anything else of the connection depends on its codec (`Client.codec` may be replaced until then).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs

from realtime.protocol.codec import Codec
from realtime.protocol.v1.json import JSONCodec
from realtime.protocol.v1.protobuf import ProtobufCodec

SUBPROTOCOLS: Mapping[str, str] = {
    "centrifuge-protobuf": "protobuf",
    "centrifuge-json": "json",
}
"""Subprotocol a client may offer → format."""


class Agreement(NamedTuple):
    """The outcome of a handshake."""

    codec: Codec
    subprotocol: str | None
    """To return to the client; None if it offered none that is known."""


class Codecs:
    """The codecs of a node. All clients that speak a codec share one object of it."""

    def __init__(self, use_offset: bool) -> None:
        """
        Args:
            use_offset: write positions as `offset`, and not as `seq` and `gen`.
        """
        self.json: Codec = JSONCodec(use_offset)
        self.protobuf: Codec = ProtobufCodec(use_offset)

    def negotiate(self, query_string: bytes, offered: Sequence[str]) -> Agreement:
        """Choose the codec of a connection.

        Args:
            query_string: of the request, undecoded.
            offered: the subprotocols the client offers, in its order.

        Beyond the spec: an offered subprotocol of the client SDKs is returned, because clients
        that offer one refuse a handshake without it.
        """
        query = parse_qs(query_string.decode("latin-1"))
        asked = query.get("format", [""])[0], query.get("protocol", [""])[0]
        subprotocol = next((name for name in offered if name in SUBPROTOCOLS), None)
        binary = "protobuf" in asked or SUBPROTOCOLS.get(subprotocol or "") == "protobuf"
        return Agreement(self.protobuf if binary else self.json, subprotocol)
