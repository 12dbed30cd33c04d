"""Publications as subscriptions with deltas get them: what changed since the one before.

In JSON, `data` is a string there, with the text or the delta. docs/protocol.md, 16.11.
"""

from __future__ import annotations

from msgspec.structs import replace

from realtime.payload import Payload
from realtime.protocol import fossil
from realtime.protocol.codec import Codec
from realtime.protocol.json_shapes import quote
from realtime.protocol.messages import Publication

TYPE = "fossil"
"""The format of deltas: the only one."""


def since(base: Publication | None, publication: Publication, codec: Codec) -> Publication:
    """Return what a codec encodes for a subscription with deltas.

    Args:
        base: the publication that the subscriber had last; None: it gets the whole data.
        publication: the one after `base`.
        codec: of the subscriber.
    """
    text = _text(publication, codec)
    delta = None if base is None else fossil.delta(_text(base, codec), text)
    sent = text if delta is None else delta
    data = Payload(sent, sent if codec.binary else quote(sent.decode()))
    return replace(publication, data=data, delta=delta is not None)


def _text(publication: Publication, codec: Codec) -> bytes:
    """Return the data as subscriptions without deltas get them."""
    return publication.data.raw if codec.binary else publication.data.json
