"""Joins adjacent publications while they are read: the pure part of `join_on_read`.

Streams of language models are many publications with a few words each. A reader who comes later
needs their text, and not their number:

    [{"type":"text-delta","id":"1","delta":"Hel"}]     ┐
    [{"type":"text-delta","id":"1","delta":"lo"}]      ├──► one publication, [{..."delta":"Hello"}]
    "Hel" "lo"                                         └──► one publication, "Hello"

Arrays become one array, and in it adjacent chunks become one chunk where `_TABLE` says so. Strings
become one string. The joined publication has the offset and time of the last one. Whatever is
neither, has tags, or was published by a client, stays as it is and separates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from realtime.payload import Payload
from realtime.protocol.messages import Publication

MAX_BYTES = 65536
"""Bytes of the data of a joined publication."""

_OF_OPENAI = "item_id output_index content_index summary_index delta"

_TABLE = {
    "text-delta": "id delta",
    "reasoning-delta": "id delta",
    "tool-input-delta": "toolCallId inputTextDelta",
    "TEXT_MESSAGE_CONTENT": "messageId delta",
    "REASONING_MESSAGE_CONTENT": "messageId delta",
    "TOOL_CALL_ARGS": "toolCallId delta",
    "response.output_text.delta": _OF_OPENAI,
    "response.refusal.delta": _OF_OPENAI,
    "response.reasoning_summary_text.delta": _OF_OPENAI,
    "response.reasoning_text.delta": _OF_OPENAI,
    "response.function_call_arguments.delta": _OF_OPENAI,
}
"""Type of a chunk → the fields in which adjacent chunks are equal, and last the one with text."""

_ROWS = {f'"{kind}"'.encode(): fields.split() for kind, fields in _TABLE.items()}

_NUMBER = "sequence_number"
"""A field of which the last value counts."""

_SINGLE = ("providerMetadata", "metadata", "logprobs")
"""A chunk that has one of these is not joined."""
_NOTHING = (b"null", b"[]")

_decode_array = msgspec.json.Decoder(list[Raw]).decode
_decode_chunk = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class _Delta(NamedTuple):
    """A chunk that can be joined."""

    key: tuple[Any, ...]
    field: str
    chunk: dict[str, Raw]
    texts: list[bytes]
    """Its text, and those of the chunks that were joined with it, without their quotes."""

    def add(self, other: _Delta) -> None:
        self.texts.extend(other.texts)
        if _NUMBER in other.chunk:
            self.chunk[_NUMBER] = other.chunk[_NUMBER]

    def encoded(self) -> bytes:
        self.chunk[self.field] = Raw(b'"%b"' % b"".join(self.texts))
        return _encode(self.chunk)


class _Joined:
    """What publications that follow each other become: an array, or a string."""

    def __init__(self, publication: Publication) -> None:
        self.kind = publication.data.json[:1]
        self.size = 2
        self._parts: list[bytes | _Delta] = []
        self._first = self._last = publication
        self.add(publication)

    def takes(self, data: bytes) -> bool:
        return data[:1] == self.kind and self.size + len(data) <= MAX_BYTES

    def add(self, publication: Publication) -> None:
        self._last = publication
        data = publication.data.json
        if self.kind == b'"':
            self._parts.append(data[1:-1])
            self.size += len(data)
            return
        for chunk in _decode_array(data):
            self.add_chunk(bytes(chunk))

    def add_chunk(self, text: bytes) -> None:
        chunk = _delta(text)
        before = self._parts[-1] if self._parts else None
        if isinstance(chunk, _Delta) and isinstance(before, _Delta) and before.key == chunk.key:
            before.add(chunk)
            self.size += len(chunk.texts[0])
        else:
            self._parts.append(chunk)
            self.size += len(text) + 1

    def publication(self) -> Publication:
        if self._first is self._last:
            return self._first
        data = self.array() if self.kind == b"[" else b'"%b"' % b"".join(self._parts)  # type: ignore[arg-type]
        return replace(self._last, data=Payload(data, data))

    def array(self) -> bytes:
        parts = (each.encoded() if isinstance(each, _Delta) else each for each in self._parts)
        return b"[%b]" % b",".join(parts)


def join(publications: Iterable[Publication]) -> tuple[Publication, ...]:
    """Return publications with those joined that a reader need not get one by one.

    Args:
        publications: of one stream, in the order of their offsets.
    """
    found: list[Publication | _Joined] = []
    for publication in publications:
        data = publication.data.json
        if publication.tags or publication.info is not None or data[:1] not in (b"[", b'"'):
            found.append(publication)
            continue
        last = found[-1] if found else None
        if isinstance(last, _Joined) and last.takes(data):
            last.add(publication)
        else:
            found.append(_Joined(publication))
    return tuple(each.publication() if isinstance(each, _Joined) else each for each in found)


def join_chunks(chunks: Iterable[Any]) -> list[Any]:
    """Return chunks, as Python objects, with those joined that mean the same as one."""
    joined = _Joined(Publication(Payload(b"[]", b"[]")))
    for chunk in chunks:
        joined.add_chunk(_encode(chunk))
    decoded: list[Any] = msgspec.json.decode(joined.array())
    return decoded


def _delta(text: bytes) -> bytes | _Delta:
    """Return a chunk as one that can be joined; as it is if it cannot."""
    if not text.startswith(b"{"):
        return text
    chunk = _decode_chunk(text)
    row = _ROWS.get(bytes(chunk.get("type", b"")))
    if row is None or any(bytes(chunk.get(name, b"null")) not in _NOTHING for name in _SINGLE):
        return text
    *fields, field = row
    words = bytes(chunk.get(field, b""))
    if not words.startswith(b'"'):
        return text
    key = (bytes(chunk["type"]), *(bytes(chunk.get(name, b"")) for name in fields))
    return _Delta(key, field, chunk, [words[1:-1]])
