"""How the doctor judges the version and the clock of Redis, and whether it can make a token."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from realtime.config.options import Config
from realtime.config.reader import load
from realtime.tools.doctor import network
from realtime.tools.doctor.redis import Shard, clock, version
from realtime.tools.doctor.service import RunningService
from realtime.tools.remote import Remote
from tests.unit.auth.jwt_parts import SECRET

# versions


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("5.0.14", "fail"),
        ("6.0.16", "fail"),
        ("6.2.0", "ok"),
        ("7.0.15", "ok"),
        ("10.1.2", "ok"),
        ("7.4-rc1", "ok"),
        ("unstable", "fail"),
    ],
)
def test_versions_older_than_the_tested_ones_fail(text: str, status: str) -> None:
    shard = SimpleNamespace(label="a server", info={"redis_version": text})
    assert version(cast(Shard, shard)).status == status


def test_valkey_is_named_with_its_own_version() -> None:
    info = {"redis_version": "7.2.4", "valkey_version": "9.1.2"}
    finding = version(cast(Shard, SimpleNamespace(label="a server", info=info)))
    assert finding.status == "ok"
    assert "Valkey 9.1.2" in finding.found


# the clock


def shard_with_skew(skew: float) -> Shard:
    """A Redis whose clock is ahead by so many seconds."""

    def run(*_: str) -> tuple[bytes, bytes]:
        seconds, part = divmod(time.time() + skew, 1)
        return b"%d" % seconds, b"%d" % (part * 1e6)

    return cast(Shard, SimpleNamespace(run=run))


@pytest.mark.parametrize("skew", [3, -3])
@pytest.mark.parametrize(("margin", "status"), [(60, "ok"), (4, "warn")])
def test_clock_may_use_half_of_the_margin_of_pages(skew: int, margin: int, status: str) -> None:
    finding = clock(Config(page_margin=margin), shard_with_skew(skew))
    assert finding.status == status
    assert ("raise page_margin" in finding.advice) == (status == "warn")


def test_difference_below_the_duration_of_the_question_is_none() -> None:
    shard = shard_with_skew(-0.0005)
    run = shard.run

    def slow(*command: str) -> object:
        time.sleep(0.01)
        return run(*command)

    shard.run = slow  # type: ignore[method-assign]
    assert clock(Config(page_margin=0), shard).status == "ok"


@pytest.mark.parametrize(("skew", "status"), [(-20, "warn"), (3600, "fail")])
def test_clock_that_tokens_suffer_from_is_named_whatever_the_margin(skew: int, status: str) -> None:
    finding = clock(Config(page_margin=10_000), shard_with_skew(skew))
    assert finding.status == status
    assert "Tokens" in finding.advice


# tokens


def service(**options: Any) -> RunningService:
    config = load({"token_hmac_secret_key": SECRET, **options})
    return RunningService(Remote("http://127.0.0.1:9"), config)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"token_audience": "us"}, True),
        ({"token_audience_regex": "^us$"}, False),
        ({"token_audience_regex": "^us$", "token_audience": "us"}, True),
        ({"token_issuer_regex": "^us$", "token_issuer": "them"}, False),
    ],
    ids=str,
)
def test_token_needs_the_parties_that_the_service_wants(
    options: dict[str, Any], expected: bool
) -> None:
    assert service(**options).signs_tokens is expected


def test_option_that_is_missing_for_a_token_is_named() -> None:
    finding = network.connect(service(token_issuer_regex="^us$"))
    assert finding.status == "skip"
    assert "token_issuer " in finding.found
