"""What travels between processes comes out as it went in, with every serializer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from channels_redis.serializers import registry
from hypothesis import given
from hypothesis import strategies as st

from realtime import payload
from realtime.engine.base import NodeInfo
from realtime.engine.redis import records
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


def carried(serializer: Any, record: records.Record) -> records.Record:
    """A record as it arrives at another process."""
    travelled: records.Record = serializer.deserialize(serializer.serialize({"record": record}))[
        "record"
    ]
    return travelled


@pytest.mark.parametrize("name", SERIALIZERS)
@quickly
@given(publication=publications)
def test_publication_arrives_as_it_was_published(name: str, publication: Publication) -> None:
    record = carried(SERIALIZERS[name], records.of_publication(publication))

    assert records.to_publication(record, publication.offset) == publication


@pytest.mark.parametrize("name", SERIALIZERS)
@quickly
@given(info=infos)
def test_client_info_arrives_as_it_was_given(name: str, info: ClientInfo) -> None:
    assert records.to_client(carried(SERIALIZERS[name], records.of_client(info))) == info


@pytest.mark.parametrize("name", SERIALIZERS)
@quickly
@given(node=nodes)
def test_node_arrives_as_it_described_itself(name: str, node: NodeInfo) -> None:
    assert records.to_node(carried(SERIALIZERS[name], records.of_node(node))) == node


def test_data_travels_in_the_spelling_in_which_it_entered(serializer: Any) -> None:
    raw = b' { "a" : 1.0,\n "b": "<\xc3\xa9>", "a": 1e5 } '

    record = carried(serializer, records.of_publication(Publication(data(raw))))

    assert records.to_publication(record, 0).data.raw == raw


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
def test_record_that_is_no_publication_is_refused(record: records.Record) -> None:
    with pytest.raises((ValueError, IndexError, TypeError, AttributeError)):
        records.to_publication(record, 0)
