"""How often the panel's password may be tried, and whose attempts are counted together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from time import sleep

import pytest
from django.core.cache import cache
from django.core.cache.backends.locmem import LocMemCache
from django.core.management import call_command
from django.db import connection
from django.test import RequestFactory
from pytest_django import Settings

from admin_panel.standalone import counters, limiter
from admin_panel.standalone.limiter import Limited
from realtime.config.reader import load
from tests.ports import free_port
from tests.redis_server import RedisServer

_windows = count(1)


@pytest.fixture
def window() -> float:
    """When a window of attempts begins in which nothing was counted yet, Unix seconds."""
    return float(next(_windows) * limiter.WINDOW)


def attempts(address: str, now: float) -> int:
    """How many attempts an address has, one second apart."""
    for made in count():
        try:
            limiter.count(address, now)
        except Limited:
            return made
    raise AssertionError


def test_address_has_ten_attempts_in_ten_minutes(window: float) -> None:
    assert attempts("192.0.2.1", window) == 10
    assert attempts("192.0.2.1", window + 599) == 0
    assert attempts("192.0.2.1", window + 600) == 10


@pytest.mark.parametrize(("at", "wait"), [(0, 600), (1.5, 599), (599.5, 1)])
def test_limit_says_when_it_ends(window: float, at: float, wait: int) -> None:
    attempts("192.0.2.1", window)
    with pytest.raises(Limited) as limited:
        limiter.count("192.0.2.1", window + at)
    assert limited.value.seconds == wait


def test_all_addresses_together_have_two_hundred(window: float) -> None:
    made = [attempts(f"192.0.2.{number}", window) for number in range(25)]
    assert made == [10] * 20 + [0] * 5


def test_address_that_is_limited_does_not_use_up_what_others_have(window: float) -> None:
    for _ in range(300):
        attempts("192.0.2.1", window)
    assert attempts("192.0.2.2", window) == 10


def test_very_many_addresses_drive_nothing_else_out_of_memory(window: float) -> None:
    """Marks of sessions that ended are kept in the same place, which is bounded."""
    counters.mark("ended:stolen", limiter.WINDOW)
    for number in range(counters.MAX_ENTRIES + 1):
        with suppress(Limited):
            limiter.count(f"address-{number}", window)
    assert counters.is_marked("ended:stolen")


def test_attempt_that_was_right_is_taken_back(window: float) -> None:
    for _ in range(50):
        limiter.count("192.0.2.1", window)
        limiter.take_back("192.0.2.1", window)
    assert attempts("192.0.2.1", window) == 10
    assert sum(attempts(f"192.0.2.{number}", window) for number in range(2, 30)) == 190


@pytest.mark.django_db
def test_count_outlives_the_default_expiry_of_the_cache(settings: Settings) -> None:
    """`incr` of some backends, such as the database, begins the default expiry anew."""
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.db.DatabaseCache",
            "LOCATION": "attempts",
            "TIMEOUT": 300,
        }
    }
    call_command("createcachetable", verbosity=0)

    counters.count("one", 3600)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM attempts WHERE expires > datetime('now', '+50 minutes')"
        )
        assert cursor.fetchone() == (1,)


FORWARDED = [
    ("no header", 1, None, "192.0.2.1"),
    ("not believed", 0, "198.51.100.7", "192.0.2.1"),
    ("one proxy", 1, "198.51.100.7", "198.51.100.7"),
    ("one proxy, and what the client wrote", 1, "203.0.113.9, 198.51.100.7", "198.51.100.7"),
    ("two proxies", 2, "203.0.113.9,198.51.100.7, 10.0.0.1", "198.51.100.7"),
    ("fewer than there are proxies", 2, "198.51.100.7", ""),
    ("no address", 1, "unknown", ""),
    ("IPv6", 1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
    ("IPv4 in IPv6", 1, "::ffff:198.51.100.7", "198.51.100.7"),
]


@pytest.mark.parametrize(
    ("proxies", "header", "expected"), [row[1:] for row in FORWARDED], ids=[r[0] for r in FORWARDED]
)
def test_address_of_a_request(proxies: int, header: str | None, expected: str) -> None:
    headers = {} if header is None else {"X-Forwarded-For": header}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR="192.0.2.1")
    assert limiter.address_of(request, load({"admin_trusted_proxies": proxies})) == expected


@pytest.mark.parametrize("header", ["192.0.2.1", "10.0.0.1, 192.0.2.1:80", "192.0.2.1,10.0.0.1"])
@pytest.mark.parametrize("proxies", [0, 3])
def test_address_that_the_server_took_from_the_header_is_nobody_s(
    header: str, proxies: int
) -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": header})
    request.META["REMOTE_ADDR"] = "192.0.2.1"
    assert limiter.address_of(request, load({"trusted_proxies": proxies})) == ""


def test_ipv6_address_that_the_server_took_from_the_header_is_nobody_s() -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": "[2001:db8::1]:80"})
    request.META["REMOTE_ADDR"] = "2001:db8::1"
    assert limiter.address_of(request, load({})) == ""


@pytest.mark.parametrize("backend", ["dummy.DummyCache", "locmem.LocMemCache", "db.DatabaseCache"])
@pytest.mark.django_db
def test_limit_holds_whatever_the_cache_does(
    settings: Settings, window: float, backend: str
) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": f"django.core.cache.backends.{backend}",
            "LOCATION": "limits",
            "OPTIONS": {"MAX_ENTRIES": 1},
        }
    }
    call_command("createcachetable", verbosity=0)

    made = 0
    for number in range(30):
        with suppress(Limited):
            limiter.count("192.0.2.1", window)
            made += 1
        cache.set(f"other-{number}", 1)  # pushes the counts out

    assert made == 10


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis that the options name."""
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that failed in another test is asked again."""
    monkeypatch.setattr(counters, "_retry_at", {})


@pytest.fixture
def begin_process(settings: Settings, redis: RedisServer) -> Callable[[], None]:
    """With the Redis engine: forget all that a new process does not know."""
    settings.REALTIME = {"redis_url": redis.url}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    return counters._own.clear


def test_processes_with_one_redis_count_together_without_a_cache(
    window: float, begin_process: Callable[[], None]
) -> None:
    for _ in range(6):
        begin_process()
        limiter.count("192.0.2.1", window)
    begin_process()
    limiter.take_back("192.0.2.1", window)
    begin_process()
    assert attempts("192.0.2.1", window) == 5


def test_session_that_ended_has_ended_in_all_processes_with_one_redis(
    window: float, begin_process: Callable[[], None]
) -> None:
    counters.mark(f"ended:{window}", 60)
    begin_process()
    assert counters.is_marked(f"ended:{window}")
    assert not counters.is_marked(f"other:{window}")


def test_session_that_ended_before_the_site_had_redis_stays_ended(
    window: float, begin_process: Callable[[], None], settings: Settings
) -> None:
    settings.CACHES = {"default": {"BACKEND": f"{__name__}.SlowCache"}}
    with_redis, settings.REALTIME = settings.REALTIME, {}
    counters.mark(f"ended:{window}", 60)
    settings.REALTIME = with_redis
    begin_process()
    assert counters.is_marked(f"ended:{window}")


def test_counts_and_marks_in_redis_expire(
    window: float, begin_process: Callable[[], None], redis: RedisServer
) -> None:
    limiter.count("192.0.2.1", window)
    limiter.take_back("192.0.2.1", window)
    limiter.take_back("192.0.2.3", window)  # counted by nobody
    counters.mark("ended:short", 0.5)
    with redis.client() as client:
        lifetimes = [client.ttl(key) for key in client.scan_iter("*:panel:*")]
    assert lifetimes
    assert all(0 <= lifetime <= limiter.WINDOW for lifetime in lifetimes)


def test_process_counts_alone_while_redis_is_away(
    window: float, begin_process: Callable[[], None], settings: Settings
) -> None:
    settings.REALTIME = {"redis_url": f"redis://127.0.0.1:{free_port()}"}
    assert attempts("192.0.2.1", window) == 10


def test_attempts_at_the_same_time_are_all_counted(window: float, settings: Settings) -> None:
    settings.CACHES = {"default": {"BACKEND": f"{__name__}.SlowCache"}}

    def attempt(_: int) -> bool:
        try:
            limiter.count("192.0.2.1", window)
        except Limited:
            return False
        return True

    with ThreadPoolExecutor(20) as threads:
        assert sum(threads.map(attempt, range(40))) == 10


class SlowCache(LocMemCache):
    """Counts as backends do that cannot count in one step."""

    def __init__(self, name: str, params: dict[str, object]) -> None:
        super().__init__("slow", params)

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        value = int(self.get(key, 0)) + delta
        sleep(0)
        self.set(key, value)
        return value


@pytest.mark.parametrize("address", ["", "fe80::1%eth0"])
def test_address_that_is_strange_is_one(address: str) -> None:
    request = RequestFactory().get("/", REMOTE_ADDR=address)
    assert limiter.address_of(request, load({})) in ("", "fe80::")
