"""Thousands of rows that were refused for one reason, and good ones behind them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import redis

import realtime
from realtime.pending import publications, reading, retries
from realtime.pending.models import SHARDS, Pending, now
from tests.pending.changed import beside
from tests.pending.conftest import NAMESPACES
from tests.pending.relaying import Relaying, data, operators, relay_all, row, write
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.usefixtures("options"), pytest.mark.django_db(transaction=True)]

MANY = 2000


@dataclass(frozen=True)
class Cause:
    """Why rows are refused: rows with these fields, and what another one of the channel has."""

    fields: dict[str, Any]
    text: str
    channel: str = "orders:1"
    waits: int = retries.MAX_ATTEMPTS - 1
    """How often the channel waits, for all of its rows together."""
    can_pass: bool = True
    """Whether another row of the channel can be published."""


CAUSES = {
    "no such namespace": Cause({}, "namespace not found", "gone:1", can_pass=False),
    "invalid channel": Cause({}, "bad request", "orders:é", can_pass=False),
    "no channel": Cause({}, "bad request", "", can_pass=False),
    "channel too long": Cause({}, "limit exceeded", "orders:" + "x" * 300, can_pass=False),
    "version without history": Cause(
        {"extras": '{"version": [1, ""]}'}, "not available", "plain:1"
    ),
    "key of another type": Cause({}, "WRONGTYPE", can_pass=False),
    "data that are not JSON": Cause({"data": "{"}, "not a JSON value", waits=0),
    "other extras": Cause({"extras": "[]"}, "extras must be an object", waits=0),
    "too large": Cause({"data": '"' + "x" * 100 + '"'}, "at most 90 characters", waits=0),
}


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_rows_that_share_a_reason_are_parked_together(
    relay: Relaying,
    options: Callable[..., None],
    redis_server: RedisServer,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    cause: Cause,
) -> None:
    options(namespaces=[*NAMESPACES, {"name": "plain"}])
    for place in (reading, publications):
        monkeypatch.setattr(place, "MAX_LENGTH", 90)
    if "WRONGTYPE" in cause.text:
        with redis.Redis.from_url(redis_server.url) as client:
            client.set(f"{unique}:meta:{cause.channel}", "x")
    good = cause.channel if cause.can_pass else beside(cause.channel)
    bad = [row(cause.channel, **cause.fields) for _ in range(MANY)]
    middle = MANY // 2
    write([*bad[:middle], row(good, data="1"), *bad[middle:], row(good, data="2")])

    with caplog.at_level(logging.ERROR):
        waits = relay_all(relay, monkeypatch)

    assert waits == [cause.channel] * cause.waits
    if good.startswith("orders"):
        assert data(good) == [1, 2]
    assert (relay.counters.relayed, relay.counters.parked) == (2, MANY)
    assert relay.counters.refused == MANY + cause.waits
    parked = operators().parked(MANY)
    assert all(cause.text in each.error for each in parked)
    assert [each.attempts for each in parked] == [cause.waits + 1] + [1] * (MANY - 1)
    assert len(caplog.messages) < MANY / 100


def test_reasons_that_alternate_in_a_channel_wait_once(
    relay: Relaying, redis_server: RedisServer, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        client.set(f"{unique}:meta:orders:1", "x")
    not_available = {"extras": '{"version": [1, ""], "skip_history": true}'}
    write([row("orders:1", **each) for _ in range(MANY // 2) for each in ({}, not_available)])

    waits = relay_all(relay, monkeypatch)

    assert waits == ["orders:1"] * 2
    assert relay.counters.parked == MANY
    assert len({each.error for each in operators().parked(MANY)}) == 2


def test_retried_rows_have_all_their_attempts_again(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([row("gone:1"), row("gone:1")])
    assert len(relay_all(relay, monkeypatch)) == 2
    operators().retry()
    assert len(relay_all(relay, monkeypatch)) == 2


def test_many_channels_of_a_namespace_that_is_gone_wait_together(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([row(f"gone:{number}") for number in range(MANY)])
    write([row(f"orders:{number}") for number in range(SHARDS)])
    written: list[int] = []
    original = reading.rows_behind

    def behind(database: str, parked: Sequence[Pending]) -> Any:
        written.append(len(parked))
        return original(database, parked)

    monkeypatch.setattr(reading, "rows_behind", behind)

    relay_all(relay, monkeypatch)

    assert (relay.counters.relayed, relay.counters.parked) == (SHARDS, MANY)
    assert max(written) > 100


def test_publication_for_a_moment_that_has_passed_is_no_backlog() -> None:
    realtime.publish("orders:1", 1, at=now() - timedelta(days=1))
    overview = operators().overview()
    assert overview.waiting == 1
    assert not overview.is_late
