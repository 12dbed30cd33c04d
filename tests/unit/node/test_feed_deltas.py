"""Deltas of a feed: every subscriber can read them, whenever it came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.config.options import ChannelOptions
from realtime.node.feed import ChannelFeed
from realtime.protocol.codec import Codec
from realtime.protocol.messages import FilterNode, Publication
from realtime.protocol.v2 import client_pb2
from realtime.protocol.v2.json import JSONCodec
from realtime.protocol.v2.protobuf import ProtobufCodec
from realtime.streams.tag_filters import tags_filter
from tests import fossil_reader
from tests.unit.parts import RecordingClient, data

JSON, PROTOBUF = JSONCodec(), ProtobufCodec()
codecs: st.SearchStrategy[Codec] = st.sampled_from([JSON, PROTOBUF])
LONG = [{"id": row, "text": "näme <b>"} for row in range(40)]

both_formats = pytest.mark.parametrize("codec", [JSON, PROTOBUF], ids=["json", "protobuf"])
both_lanes = pytest.mark.parametrize("positioned", ["a", ""], ids=["with position", "without"])


class Reader(RecordingClient):
    """Reads what it gets as a client with deltas does."""

    def __init__(self, codec: Codec, positioned: str, base: Publication | None = None) -> None:
        super().__init__(codec=codec, positioned=positioned)
        self.read: list[Any] = []
        self.deltas: list[bool] = []
        self._base = b""
        if base is not None:
            self._base = base.data.raw if codec.binary else base.data.json

    def push(self, message: bytes) -> None:
        sent, is_delta = self._sent(message)
        self._base = fossil_reader.apply(self._base, sent) if is_delta else sent
        self.read.append(json.loads(self._base))
        self.deltas.append(is_delta)

    def _sent(self, message: bytes) -> tuple[bytes, bool]:
        if self.codec.binary:
            size = 2 if message[0] & 0x80 else 1
            pub = client_pb2.Reply.FromString(message[size:]).push.pub
            return pub.data, pub.delta
        push = json.loads(message)["push"]["pub"]
        return push["data"].encode(), push.get("delta", False)


def publication(number: int) -> Publication:
    return Publication(data(json.dumps([*LONG, number], ensure_ascii=False)), offset=number)


def come(feed: ChannelFeed, client: RecordingClient, base: Publication | None = None) -> None:
    feed.hold(client)
    feed.release(client, delta=isinstance(client, Reader), base=base)


@pytest.fixture
def feed() -> ChannelFeed:
    return ChannelFeed("a", ChannelOptions())


def publish(feed: ChannelFeed, *numbers: int) -> None:
    for number in numbers:
        feed.publish(publication(number))


@both_formats
@both_lanes
def test_first_publication_is_whole_and_later_ones_are_deltas(
    feed: ChannelFeed, codec: Codec, positioned: str
) -> None:
    first, second, plain = (
        Reader(codec, positioned),
        Reader(codec, positioned),
        RecordingClient(codec=codec, positioned=positioned),
    )
    come(feed, plain)
    come(feed, first)
    publish(feed, 1, 2)
    come(feed, second)
    publish(feed, 3, 4)
    assert first.read == [[*LONG, number] for number in (1, 2, 3, 4)]
    assert first.deltas == [False, True, True, True]
    assert (second.read, second.deltas) == (first.read[2:], [False, True])
    assert plain.pushed == [codec.publication("a", publication(n)) for n in (1, 2, 3, 4)]
    assert feed.size == 3


@both_lanes
def test_recovered_subscriber_has_a_base(feed: ChannelFeed, positioned: str) -> None:
    first, behind = (Reader(JSON, positioned, publication(n)) for n in (1, 0))
    come(feed, first, publication(1))
    come(feed, behind, publication(0))
    publish(feed, 2, 3)
    assert (first.deltas, behind.deltas) == ([True, True], [False, True])
    assert first.read == behind.read == [[*LONG, 2], [*LONG, 3]]


def test_lanes_have_bases_of_their_own(feed: ChannelFeed) -> None:
    followed, other = Reader(JSON, "a"), Reader(JSON, "")
    come(feed, followed)
    come(feed, other)
    publish(feed, 1)
    feed.publish_followed(publication(2))
    publish(feed, 3)
    assert followed.read == [[*LONG, number] for number in (1, 2, 3)]
    assert other.read == [[*LONG, number] for number in (1, 3)]
    assert other.deltas == [False, True]


def test_delta_is_made_once_for_all(feed: ChannelFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    codec = JSONCodec()
    encode = codec.publication

    def counted(channel: str, publication: Publication) -> bytes:
        made.append(publication.offset)
        return encode(channel, publication)

    monkeypatch.setattr(codec, "publication", counted)
    for _ in range(5):
        come(feed, Reader(codec, "a"))
    publish(feed, 1, 2)
    assert made == [1, 2]


def keeps(feed: ChannelFeed) -> bool:
    return feed._bases is not None


def test_feed_without_deltas_keeps_no_publication(feed: ChannelFeed) -> None:
    filtered = RecordingClient(codec=JSON)
    feed.hold(filtered)
    feed.release(filtered, tags_filter(FilterNode(key="team", cmp="ex")))
    reader = Reader(JSON, "")
    publish(feed, 1)
    assert not keeps(feed)
    come(feed, reader)
    publish(feed, 2)
    assert keeps(feed)
    feed.remove(reader)
    feed.remove(filtered)
    assert not keeps(feed)
    assert not feed


@given(st.data())
def test_all_read_what_was_published(draws: st.DataObject) -> None:
    feed = ChannelFeed("a", ChannelOptions())
    seen: dict[Reader, list[Any]] = {}
    last: Publication | None = None
    value = draws.draw(fossil_reader.objects)
    for _ in range(draws.draw(st.integers(1, 12))):
        match draws.draw(st.sampled_from(["publish", "publish", "follow", "come", "return", "go"])):
            case "come":
                reader = Reader(draws.draw(codecs), "")
                come(feed, reader)
                seen[reader] = []
            case "return":
                codec = draws.draw(codecs)
                reader = Reader(codec, "a", last)
                come(feed, reader, last)
                seen[reader] = []
            case "go" if seen:
                reader = next(iter(seen))
                feed.remove(reader)
                assert reader.read == seen.pop(reader)
            case "publish" | "follow" as way:
                value = draws.draw(fossil_reader.changes(value))
                last = Publication(data(fossil_reader.text(value).decode()))
                expected = json.loads(last.data.json)
                (feed.publish if way == "publish" else feed.publish_followed)(last)
                for reader, got in seen.items():
                    if way == "publish" or reader.positioned == {"a"}:
                        got.append(expected)
    for reader, got in seen.items():
        assert reader.read == got
