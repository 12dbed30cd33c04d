"""Rates: how options write them, and how often they let something be taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.config.limit_options import COMMANDS
from realtime.config.rates import Rate, parse, parse_named
from realtime.config.reader import load, read
from realtime.protocol.messages import Method
from tests.unit.parts import quickly


def taken_at_once(rate: Rate, now: float = 100.0) -> int:
    """How many can be taken at one moment."""
    debt_end, number = 0.0, 0
    while (after := rate.take(debt_end, now)) is not None:
        debt_end, number = after, number + 1
    return number


@pytest.mark.parametrize(
    ("text", "burst", "interval"),
    [
        ("10/s", 10, 0.1),
        ("30/m", 30, 2.0),
        ("2/h", 2, 1800.0),
        ("100/s burst 1000", 1000, 0.01),
        ("  5/m   burst 1 ", 1, 12.0),
    ],
)
def test_rate_of_an_option(text: str, burst: int, interval: float) -> None:
    rate = parse(text)
    assert rate.burst == burst
    assert rate.interval == pytest.approx(interval)
    assert taken_at_once(rate) == burst


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "0/s",
        "-1/s",
        "1/d",
        "1.5/s",
        "10/s burst",
        "10/s burst 0",
        "10/s 5",
        "٣/s",
        "9" * 10 + "/s",
    ],
)
def test_text_that_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate"):
        parse(text)


@quickly
@given(
    number=st.integers(1, 1000),
    burst=st.integers(1, 1000),
    steps=st.lists(st.floats(0, 3), max_size=200),
)
def test_never_more_than_a_burst_and_what_came_since(
    number: int, burst: int, steps: list[float]
) -> None:
    rate = Rate(number, 1, burst)
    now = begun = 100.0
    debt_end, taken = 0.0, 0
    for step in steps:
        now += step
        while (after := rate.take(debt_end, now)) is not None:
            debt_end, taken = after, taken + 1
        assert taken <= burst + (now - begun) * number + 1

    assert taken_at_once(rate, debt_end + 0.001) == burst  # and after a wait, all of it again


def test_named_rates() -> None:
    rates = parse_named("* 100/s burst 1000, rpc 30/m ,publish  5/s", {"rpc", "publish"})
    assert {name: rate.burst for name, rate in rates.items()} == {
        "*": 1000,
        "rpc": 30,
        "publish": 5,
    }
    assert parse_named("", {"rpc"}) == parse_named(" , ", {"rpc"}) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rpc", "not a name and a rate"),
        ("10/s", "not a name and a rate"),
        ("rpc 10", "is not a rate"),
        ("connect 10/s", "'connect' is not one of"),
        ("rpc 1/s, rpc 2/s", "'rpc' has two rates"),
    ],
)
def test_mistake_in_named_rates_says_what_it_is(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_named(text, {"rpc"})


def test_every_command_but_connect_and_pong_may_have_a_rate() -> None:
    assert COMMANDS | {"connect", "pong"} == set(Method)


def test_settings_may_have_rates_as_a_mapping() -> None:
    config = load({"client_command_rates": {"publish": "10/s", "*": "100/s burst 200"}})
    assert {name: rate.burst for name, rate in config.rates_of_clients.items()} == {
        "publish": 10,
        "*": 200,
    }


@pytest.mark.parametrize(
    "option", ["client_command_rates", "user_command_rates", "address_connection_rate"]
)
@pytest.mark.parametrize("value", ["often", "* 10/x"])
def test_mistake_in_a_rate_is_reported_with_its_option(option: str, value: str) -> None:
    problems = read({option: value})[1]
    assert [(problem.id, problem.message.split(":")[0]) for problem in problems] == [
        ("E048", option)
    ]


@pytest.mark.parametrize(
    ("value", "check"),
    [
        ({"publish": "1"}, "E048"),
        ({"x": "1/s"}, "E048"),
        ({"publish": 1}, "E003"),
        (["publish 1/s"], "E003"),
    ],
)
def test_mistake_in_a_mapping_of_rates_is_reported(value: object, check: str) -> None:
    assert [problem.id for problem in read({"client_command_rates": value})[1]] == [check]


def test_rates_are_off_where_they_are_empty() -> None:
    assert load({"client_command_rates": ""}).rates_of_clients == {}
    assert load({"client_command_rates": {}}).rates_of_clients == {}
    assert load({}).rates_of_users == {}
    assert load({}).rate_of_addresses is None
