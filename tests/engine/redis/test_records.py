"""What travels between processes comes out as it went in, with every serializer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from channels_redis.serializers import registry
from hypothesis import given
from hypothesis import strategies as st

from realtime import payload
from realtime.engine import records
from realtime.engine.nodes import NodeInfo
from realtime.engine.records import Message
from realtime.payload import Payload
from realtime.protocol.messages import ClientInfo, Publication
from tests.unit.parts import data, json_values, quickly, white_space

SERIALIZERS = {
    "msgpack": registry.get_serializer("msgpack"),
    "json": registry.get_serializer("json"),
    "encrypted": registry.get_serializer("msgpack", symmetric_encryption_keys=["a key"]),
}

characters = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(0, 2**53)


@st.composite
def payloads(draw: st.DrawFn) -> Payload:
    """Any JSON value, compact or not, with or without escapes."""
    compact = draw(st.booleans())
    text = json.dumps(
        draw(json_values),
        ensure_ascii=draw(st.booleans()),
        separators=(",", ":") if compact else None,
    )
    raw = text.encode("utf-8", "replace")
    return payload.check(draw(white_space) + raw + draw(white_space))


infos = st.builds(
    ClientInfo, characters, characters, st.none() | payloads(), st.none() | payloads()
)
publications = st.builds(
    Publication, payloads(), st.none() | infos, st.integers(0, 2**63), characters
)
nodes = st.builds(NodeInfo, characters, characters, characters, numbers, numbers, numbers, numbers)


@pytest.fixture(params=SERIALIZERS)
def serializer(request: pytest.FixtureRequest) -> Any:
    """Each way in which a layer writes messages."""
    return SERIALIZERS[request.param]


def carried(serializer: Any, message: Message) -> Message:
    """A message as it arrives at another process."""
    travelled: Message = serializer.deserialize(serializer.serialize(message))
    return travelled


@pytest.mark.parametrize("name", SERIALIZERS)
@quickly
@given(publication=publications)
def test_publication_arrives_as_it_was_published(name: str, publication: Publication) -> None:
    message = carried(SERIALIZERS[name], records.of_publication(publication))
    assert records.to_publication(message, publication.offset) == publication


@pytest.mark.parametrize("name", SERIALIZERS)
@quickly
@given(info=infos)
def test_client_info_arrives_as_it_was_given(name: str, info: ClientInfo) -> None:
    assert records.to_client(carried(SERIALIZERS[name], records.of_client(info))) == info


@pytest.mark.parametrize("name", SERIALIZERS)
@quickly
@given(node=nodes)
def test_node_arrives_as_it_described_itself(name: str, node: NodeInfo) -> None:
    message = carried(SERIALIZERS[name], records.of_node(node))
    assert records.to_status(message, 0.0, alive=True).info() == node


def test_data_travels_in_the_spelling_in_which_it_entered(serializer: Any) -> None:
    raw = b' { "a" : 1.0,\n "b": "<\xc3\xa9>", "a": 1e5 } '
    message = carried(serializer, records.of_publication(Publication(data(raw))))
    assert records.to_publication(message, 0).data.raw == raw


def test_absent_info_and_info_null_are_told_apart(serializer: Any) -> None:
    info = ClientInfo("17", "C", None, data("null"))
    arrived = records.to_client(carried(serializer, records.of_client(info)))
    assert (arrived.conn_info, arrived.chan_info) == (None, data("null"))


@pytest.mark.parametrize(
    "record",
    [
        [],
        ["1"],
        [1, "u"],
        ["{", "u"],
        ["", "u"],
        ["1", "u", []],
        ["1", "u", ["17", "C", "{", None]],
        ["1", "u", ["17", "C", 5, None]],
        ["1", "u", 7],
    ],
    ids=json.dumps,
)
def test_record_that_is_not_a_publication_is_refused(record: list[Any]) -> None:
    with pytest.raises((ValueError, IndexError, TypeError, AttributeError)):
        records.to_publication({"record": record}, 0)


# the mark: payloads that were checked when they entered are not parsed again

COMPACT, SPACED, UNSAFE = b'{"a":1}', b'{"a": 1}', b'"<"'


@pytest.mark.parametrize(
    ("payloads", "marked"),
    [
        pytest.param((COMPACT, None, None), True, id="data"),
        pytest.param((COMPACT, COMPACT, COMPACT), True, id="data-and-infos"),
        pytest.param((SPACED, None, None), False, id="spaces"),
        pytest.param((UNSAFE, None, None), False, id="to-be-escaped"),
        pytest.param((COMPACT, SPACED, None), False, id="info-of-the-connection"),
        pytest.param((COMPACT, None, SPACED), False, id="info-of-the-channel"),
    ],
)
def test_mark_says_that_all_payloads_are_compact(
    payloads: tuple[bytes, bytes | None, bytes | None], marked: bool
) -> None:
    raw, conn_info, chan_info = (None if each is None else data(each) for each in payloads)
    assert raw is not None
    info = ClientInfo("17", "C", conn_info, chan_info) if conn_info or chan_info else None

    message = records.of_publication(Publication(raw, info))

    assert message.get(records.CHECKED, False) is marked
    if info is not None:
        assert records.of_client(info).get(records.CHECKED, False) is marked


def test_marked_payload_is_taken_as_it_is(serializer: Any) -> None:
    message = carried(serializer, records.of_publication(Publication(data(COMPACT))))
    arrived = records.to_publication(message, 0).data
    assert arrived.raw is arrived.json
    assert arrived.raw == COMPACT


@pytest.mark.parametrize("mark", [None, False, 1, "true", 2])
def test_payload_without_the_mark_is_parsed(mark: object) -> None:
    """Of older nodes, which write none, and of newer ones, which may mean something else."""
    message = {"record": ["{", "u"]} | ({} if mark is None else {"checked": mark})
    with pytest.raises(ValueError, match="JSON"):
        records.to_publication(message, 0)


def test_nodes_of_the_version_before_the_mark_read_marked_messages(serializer: Any) -> None:
    """They look for the record alone, and for its first fields."""
    info = ClientInfo("17", "C", data(COMPACT), data(COMPACT))
    publication = Publication(data(COMPACT), info, uid="u")

    record = carried(serializer, records.of_publication(publication))["record"]
    client = carried(serializer, records.of_client(info))["record"]

    assert record == [COMPACT.decode(), "u", client]
    assert client == ["17", "C", COMPACT.decode(), COMPACT.decode()]
