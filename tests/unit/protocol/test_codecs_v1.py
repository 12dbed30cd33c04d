"""The first generation: what both of its formats do not have, and how they close."""

from __future__ import annotations

import pytest

from realtime.errors import DISCONNECTS, Disconnect
from realtime.protocol.codec import Codec
from realtime.protocol.v1.json import JSONCodec
from realtime.protocol.v1.protobuf import ProtobufCodec

CODECS: list[Codec] = [JSONCodec(use_offset=True), ProtobufCodec(use_offset=True)]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.format)
@pytest.mark.parametrize("kind", DISCONNECTS)
def test_close_reason_is_advice_in_json(kind: type[Disconnect], codec: Codec) -> None:
    assert codec.closing(kind()) == (kind.code, kind.advice)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.format)
def test_generation_has_no_pings_of_the_server_and_not_every_push(codec: Codec) -> None:
    assert (codec.generation, codec.server_pings, codec.separator) == (1, False, b"")
    assert codec.refreshed(True, 60) is None
    assert codec.disconnect(Disconnect()) is None
    with pytest.raises(NotImplementedError):
        codec.ping()
