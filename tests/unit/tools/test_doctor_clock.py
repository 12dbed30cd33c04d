"""How the doctor judges the clock of Redis."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

import pytest

from realtime.config.options import Config
from realtime.tools.doctor.redis import Shard, clock


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
