"""Who may read the metrics: by key, or by address."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from realtime.config.reader import load
from realtime.monitoring.access import may_read

KEY = "a-key-that-only-prometheus-has"
WITH_KEY = load({"metrics_key": KEY})
OFF = load({})


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"authorization": f"Bearer {KEY}"}, True),
        ({"authorization": f"bearer   {KEY}"}, True),
        ({"x-api-key": KEY}, True),
        ({}, False),
        ({"authorization": ""}, False),
        ({"authorization": "Bearer"}, False),
        ({"authorization": "Bearer "}, False),
        ({"authorization": f"apikey {KEY}"}, False),
        ({"authorization": f"Bearer {KEY}x"}, False),
        ({"authorization": f"Bearer {KEY[:-1]}"}, False),
        ({"authorization": "Bearer \xff\u20ac"}, False),
        ({"x-api-key": ""}, False),
    ],
)
def test_key_is_bearer_or_header(headers: Mapping[str, str], allowed: bool) -> None:
    assert may_read(WITH_KEY, headers, "10.0.0.1") is allowed


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer "}, {"x-api-key": ""}])
def test_without_a_key_the_empty_one_is_wrong(headers: Mapping[str, str]) -> None:
    assert not may_read(OFF, headers, "127.0.0.1")


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", False),
        ("10.255.0.1", True),
        ("::ffff:10.1.2.3", True),
        ("11.0.0.1", False),
        ("fd00::1", True),
        ("fe80::1%eth0", False),
        ("", False),
        ("unix:", False),
        ("10.0.0.1.evil.example", False),
    ],
)
def test_address_is_in_a_network(address: str, allowed: bool) -> None:
    config = load({"metrics_addresses": ["127.0.0.1", "10.0.0.0/8", "fd00::/8"]})
    assert may_read(config, {}, address) is allowed


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip"])
def test_address_of_an_undeclared_proxy_is_not_that_of_the_client(header: str) -> None:
    options = {"metrics_addresses": ["127.0.0.1"]}
    forwarded = {header: "203.0.113.9"}
    assert not may_read(load(options), forwarded, "127.0.0.1")
    # the address is that of the client only if it is read from X-Forwarded-For
    declared = load({**options, "trusted_proxies": 1})
    assert may_read(declared, forwarded, "127.0.0.1") is (header == "x-forwarded-for")


def test_key_counts_from_any_address() -> None:
    config = load({"metrics_key": KEY, "metrics_addresses": ["127.0.0.1"]})
    assert may_read(config, {"x-api-key": KEY, "x-forwarded-for": "203.0.113.9"}, "10.0.0.1")
