"""One relay: publishes rows, deletes them, and leaves those that it cannot publish."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management.base import CommandError

import realtime
from realtime.checks import TAG
from realtime.config import sources
from realtime.engine.redis.broker import RedisStreams
from realtime.engine.redis.redis_bus import ShardRequest
from realtime.errors import BadRequest
from realtime.pending import reading, retries, shards
from realtime.pending import relay as module
from realtime.pending.models import SHARDS, Pending, Relay, at_once, now, shard_of
from realtime.pending.relay import LOOK_INTERVAL, RelayThread
from realtime.pending.retries import MAX_ATTEMPTS
from realtime.serving import serving
from realtime.tools.doctor import site
from realtime.typed.declarations import declarations
from tests.live.tools.command import call, call_json
from tests.pending.conftest import NAMESPACES
from tests.pending.relaying import Relaying, data, operators

pytestmark = [pytest.mark.usefixtures("options"), pytest.mark.django_db(transaction=True)]


def test_rows_of_a_channel_go_out_in_their_order(relay: Relaying) -> None:
    for number in range(10):
        realtime.publish(f"orders:{number % 2}", number, durable=True)
    relay.look()
    assert (data("orders:0"), data("orders:1")) == ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])
    assert not Pending.objects.exists()
    assert relay.counters.relayed == 10


def test_every_shard_gets_its_turn_while_all_are_busy(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"orders:{number}" for number in range(1000)]
    channels = {shard_of(name): name for name in names}
    assert len(channels) == SHARDS
    for number in range(3):
        realtime.broadcast(channels.values(), number, durable=True)
    monkeypatch.setattr(module, "BATCH", module.SHARDS_AT_ONCE)  # a row of each shard
    relay.look(SHARDS // module.SHARDS_AT_ONCE)
    assert [data(channel) for channel in channels.values()] == [[0]] * SHARDS


def test_tags_and_keys_of_the_caller_go_with_the_row(relay: Relaying) -> None:
    first = realtime.publish("orders:1", 1, once="a")
    realtime.publish("orders:1", 1, once="a", durable=True)
    realtime.publish("orders:1", 2, tags={"colour": "red"}, durable=True)

    relay.look()

    assert [(each["data"], each.get("tags")) for each in realtime.history("orders:1")] == [
        (1, None),
        (2, {"colour": "red"}),
    ]
    assert first is not None


def test_changes_of_a_map_are_made_in_their_order(relay: Relaying) -> None:
    seats = realtime.map("seats:1")
    for number in range(3):
        assert seats.put("a", number, durable=True) is None
    seats.put("a", 3, if_new=True, durable=True)  # refused, and those behind it go on
    seats.put("b", 4, ttl=0, if_new=True, durable=True)
    seats.remove("a", durable=True)
    seats.put("c", 5, if_exists=True, durable=True)
    seats.put("d", 6, durable=True)
    relay.look()

    assert not Pending.objects.exists()
    changes = [
        (each["key"], each["data"], "removed" in each) for each in realtime.history("seats:1")
    ]
    assert changes == [
        *(("a", number, False) for number in range(3)),
        ("b", 4, False),
        ("a", None, True),
        ("d", 6, False),
    ]
    assert [(entry.key, entry.data) for entry in seats.items()] == [("b", 4), ("d", 6)]


def test_relay_that_fails_before_the_delete_publishes_nothing_twice(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    realtime.publish("orders:1", 1, durable=True)
    with monkeypatch.context() as patch:
        patch.setattr(RelayThread, "_settle", lambda *_: 1 / 0)
        relay.look()
    assert data("orders:1") == [1]
    assert Pending.objects.count() == 1

    relay.thread._not_before.clear()
    relay.look()

    assert data("orders:1") == [1]
    assert not Pending.objects.exists()


def test_scheduled_row_waits_until_it_is_due(relay: Relaying) -> None:
    realtime.publish("orders:1", 1, at=timedelta(hours=1))
    assert relay.look() == LOOK_INTERVAL
    assert data("orders:1") == []
    Pending.objects.update(due=now())
    relay.look()
    assert data("orders:1") == [1]


def test_rows_wait_while_the_engine_is_away(relay: Relaying, options: Callable[..., None]) -> None:
    realtime.publish("orders:1", 1, durable=True)
    options(redis_url="redis://127.0.0.1:1")

    relay.look()

    assert relay.counters.failures == 1
    assert Pending.objects.get().attempts == 0
    options()
    relay.thread._not_before.clear()
    relay.look()
    assert data("orders:1") == [1]


@pytest.fixture
def undeclared() -> Iterator[None]:
    """A site without typed channels; those of the test are forgotten."""
    before = declarations.all
    declarations.replace([])
    yield
    declarations.replace(before)
    sources.configuration.declare(declarations if before else None)


@pytest.mark.parametrize("channel", ["orders:1", "plain:1"])
def test_rows_behind_one_that_redis_refuses_wait_for_it(
    relay: Relaying,
    options: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    channel: str,
) -> None:
    options(namespaces=[*NAMESPACES, {"name": "plain"}])
    request = RedisStreams._request

    def refused_once(streams: RedisStreams, *args: Any, **options: Any) -> ShardRequest:
        """As if memory was freed between the first row and the second."""
        monkeypatch.setattr(RedisStreams, "_request", request)
        refusal = "return redis.error_reply('OOM command not allowed')"
        return ShardRequest(0, (b"EVAL", refusal, 0))

    for number in range(3):
        realtime.publish(channel, number, durable=True)
    monkeypatch.setattr(RedisStreams, "_request", refused_once)
    relay.look(1)
    assert Pending.objects.count() == 3

    Relay.objects.update(held="")
    relay.rested()
    relay.look(1)
    assert not Pending.objects.exists()
    if channel == "orders:1":
        assert data(channel) == [0, 1, 2]


def test_row_of_an_old_version_does_not_hold_back_those_behind_it(relay: Relaying) -> None:
    realtime.publish("orders:1", 2, version=2)
    realtime.publish("orders:1", 1, version=1, durable=True)
    realtime.publish("orders:1", 3, version=3, durable=True)
    relay.look(1)
    assert data("orders:1") == [2, 3]
    assert not Pending.objects.exists()


def test_row_of_a_type_that_changed_goes_out(
    relay: Relaying, options: Callable[..., None], undeclared: None
) -> None:
    """It was right when it was committed, and the channel must not wait for it."""
    options(typed_channels="raise")
    realtime.publish("orders:1", 1, durable=True)
    realtime.channel("orders:{pk}", sends=str)
    realtime.publish("orders:1", "2", durable=True)
    with pytest.raises(BadRequest):
        realtime.publish("orders:1", 3, durable=True)

    relay.look()

    assert data("orders:1") == [1, "2"]


def refused(options: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace goes, and a channel waits no time for the next attempt."""
    realtime.publish("bills:1", 1)
    realtime.publish("bills:1", 2)
    realtime.publish("orders:1", 3, durable=True)
    options(namespaces=NAMESPACES[:1])
    monkeypatch.setattr(retries, "PAUSES", (0.0,) * (MAX_ATTEMPTS - 1))


def test_refused_row_is_parked_and_others_go_on(
    relay: Relaying, options: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(options, monkeypatch)

    relay.look(1 + SHARDS)
    assert data("orders:1") == [3]
    first, second = Pending.objects.order_by("id")
    assert (first.due, first.attempts) == (None, MAX_ATTEMPTS)
    assert "namespace not found" in first.error
    assert second.due is None

    [one, other] = operators().parked(10)
    assert one.channel == "bills:1"
    assert operators().overview()[:3] == (0, 0, 2)
    assert operators().drop([one.key]) == 1
    options()
    assert operators().retry(channel="orders:1") == 0
    assert operators().retry([other.key]) == 1
    relay.look()
    assert data("bills:1") == [2]


def test_channel_waits_for_the_next_attempt_of_its_row(
    relay: Relaying, options: Callable[..., None]
) -> None:
    realtime.publish("bills:1", 1)
    realtime.publish("bills:1", 2)
    options(namespaces=NAMESPACES[:1])
    relay.look(1 + SHARDS)
    options()

    Pending.objects.filter(attempts=0).update(created=now())
    relay.look()
    assert data("bills:1") == []  # the second one does not overtake
    Relay.objects.update(held="")
    relay.thread._busy.clear()
    relay.look()
    assert data("bills:1") == [1, 2]


def test_lease_gives_a_shard_to_one_relay_until_it_ends() -> None:
    reading.next_due("default")
    with shards.taken("default", [1, 2], "one") as taken:
        assert [shard.shard for shard in taken] == [1, 2]
        with shards.taken("default", [2, 3], "other") as others:
            assert [shard.shard for shard in others] == [3]
        Relay.objects.filter(shard=1).update(until=now() - timedelta(seconds=1))
        with shards.taken("default", [1], "other") as others:
            assert [shard.shard for shard in others] == [1]
    with shards.taken("default", [1, 2], "other") as others:
        assert len(others) == 2


def test_overview_tells_how_long_the_oldest_waits() -> None:
    assert operators().overview() == (0, 0, 0, None)
    realtime.publish("orders:1", 1, durable=True)
    realtime.publish("orders:1", 1, at=timedelta(hours=1))
    Pending.objects.filter(due=at_once()).update(created=now() - timedelta(minutes=2))

    overview = operators().overview()

    assert overview[:3] == (1, 1, 0)
    assert overview.oldest is not None
    assert overview.oldest >= 120
    assert overview.is_late


def test_command_shows_retries_and_drops_parked_rows(
    relay: Relaying, options: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(options, monkeypatch)
    relay.look(1 + SHARDS)
    [one, other] = call_json("pending")["rows"]
    assert "0 rows waiting; 0 scheduled; 2 parked." in call("pending")
    assert call("pending", one["key"], "--drop") == "1 row dropped."
    assert call_json("pending", "--retry", "--channel", "bills:1") == {"retried": 1}
    assert call_json("pending")["waiting"] == 1
    assert Pending.objects.get().key.hex == other["key"]


@pytest.mark.parametrize("arguments", [["nonsense", "--drop"], ["--channel", "a"]], ids=str)
def test_command_refuses_what_it_does_not_understand(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call("pending", *arguments)


def test_check_of_a_database_warns_of_rows_that_wait() -> None:
    realtime.publish("orders:1", 1, durable=True)
    assert run_checks(tags=[TAG], databases=["default"]) == run_checks(tags=[TAG])
    Pending.objects.update(created=now() - timedelta(minutes=2))
    found = [message.id for message in run_checks(tags=[TAG], databases=["default"])]
    assert "realtime.W034" in found
    assert "realtime.W034" not in [message.id for message in run_checks(tags=[TAG])]
    assert "realtime.W034" not in [m.id for m in run_checks(tags=[TAG], databases=["other"])]


def test_option_without_the_app_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "realtime.E047" not in [message.id for message in run_checks(tags=[TAG])]
    monkeypatch.setattr(serving, "row_writer", None)
    [message] = [each for each in run_checks(tags=[TAG]) if each.id == "realtime.E047"]
    assert "namespace 'bills'" in message.msg


def test_table_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pending._meta, "db_table", "not_migrated")
    assert site.pending(operators()).status == "fail"
    with pytest.raises(CommandError, match="not_migrated"):
        call("pending")


def test_doctor_warns_of_rows_that_wait_or_are_parked() -> None:
    assert site.pending(operators()).status == "ok"
    realtime.publish("orders:1", 1, durable=True)
    Pending.objects.update(created=now() - timedelta(minutes=2))
    assert "1 durable publication waiting" in site.pending(operators()).found
    Pending.objects.update(due=None)
    assert "1 durable publication parked" in site.pending(operators()).found
