"""Which versions of Redis the doctor accepts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from realtime.tools.doctor.redis import Shard, version


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
    shard = SimpleNamespace(label="a server", info=info)
    finding = version(cast(Shard, shard))
    assert finding.status == "ok"
    assert "Valkey 9.1.2" in finding.found
