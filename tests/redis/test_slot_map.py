"""What a server of a cluster may say of the places of slots. No server: see test_cluster.py."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.errors import EngineUnavailable
from realtime.redis.hosts import Host
from realtime.redis.slot_map import Incomplete, SlotMap

ASKED = ("asked", 6379)
SLOT = 7


def slot_map(*urls: str) -> SlotMap:
    return SlotMap([Host({"address": url}) for url in urls or ("redis://asked:6379",)], [SLOT])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(b"10.0.0.2", "10.0.0.2", id="address"),
        pytest.param(b"b.example.org", "b.example.org", id="hostname"),
        pytest.param(b"2001:db8::2", "2001:db8::2", id="IPv6"),
        pytest.param(None, "asked", id="unknown endpoint"),
        pytest.param(b"", "asked", id="a server that does not know its own address"),
    ],
)
def test_server_is_where_it_is_said_to_be(name: bytes | None, expected: str) -> None:
    slots = slot_map()
    slots.take(ASKED, [[0, 16383, [name, 6380, b"id", []], [b"replica", 6381, b"id2", []]]])
    assert slots.places == {SLOT: (expected, 6380)}
    assert ("replica", 6381) in slots.others()


def test_server_whose_hostname_is_empty_is_named_as_the_reason() -> None:
    """With `cluster-preferred-endpoint-type hostname` servers call it "?"."""
    with pytest.raises(Incomplete, match="cluster-announce-hostname"):
        slot_map().take(ASKED, [[0, 16383, [b"?", 6380, b"id", [b"ip", b"10.0.0.2"]]]])


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"OK", id="text"),
        pytest.param(None, id="nothing"),
        pytest.param([[0]], id="no end"),
        pytest.param([[0, 16383]], id="no server"),
        pytest.param([[0, 16383, [b"h"]]], id="no port"),
        pytest.param([[b"a", 16383, [b"h", 1]]], id="no number"),
    ],
)
def test_reply_of_another_form_is_refused(reply: Any) -> None:
    with pytest.raises(EngineUnavailable, match="its answer to CLUSTER SLOTS is none"):
        slot_map().take(ASKED, reply)


def test_credentials_and_tls_of_the_first_address_are_those_of_all() -> None:
    """Servers may know each other by the names of the other addresses."""
    slots = slot_map("rediss://user:word@a:1?ssl_cert_reqs=none", "redis://b:2")
    for place in (("b", 2), ("c", 3)):
        host = slots.at(place)
        assert host.label == f"rediss://{place[0]}:{place[1]}/0"
        assert (host.username, host.password) == ("user", "word")
