"""The permissions that docs/redis.md gives to the service, and work that needs all of them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import pytest

from realtime.engine.base import Outgoing
from realtime.engine.limits import Debt
from realtime.engine.once import Once
from realtime.engine.redis.broker import MetaSettings
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, Publication
from realtime.redis.commands import Wait
from tests.engine.bench import KEPT, NODE, PLAIN
from tests.engine.map_bench import KINDS_OF_MAPS, make
from tests.engine.redis_bench import RedisBench
from tests.redis_server import RedisServer
from tests.server import ROOT
from tests.unit.parts import data, position_of

EVERYTHING = MetaSettings(lifetime=600, epoch_per_run=True, wait=Wait(0, 100))
"""Settings of streams that need every permission."""

_SOMEBODY = ClientInfo("17", "C", None, None)
_DOCUMENTED = re.compile(r"^ACL SETUSER realtime on >password (.+)$", re.MULTILINE)
_DOCUMENTED_FOR_CLUSTERS = re.compile(r"With ACLs, add `([^`]+)`")


def permissions(prefix: str, *, cluster: bool = False) -> list[str]:
    """Return the documented rules of an ACL for a prefix; `cluster`: with those for a cluster."""
    text = (ROOT / "docs" / "redis.md").read_text()
    patterns = [_DOCUMENTED, *([_DOCUMENTED_FOR_CLUSTERS] if cluster else ())]
    found = [pattern.search(text) for pattern in patterns]
    assert all(found), "docs/redis.md does not give the permissions"
    rules = " ".join(each[1] for each in found if each is not None)
    return rules.replace("mysite", prefix).split()


def allow(server: RedisServer, user: str, rules: Sequence[str]) -> None:
    """Give a user these permissions, and no others."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", user, "on", "resetkeys", *rules)


async def use_everything(engine: RedisBench) -> None:
    """Use all that the service uses in Redis, and see that keys of other sites are refused."""
    await engine.broker.subscribe("news")
    for options in (KEPT, PLAIN):
        for once in (None, Once("k" if options is KEPT else "l")):
            sent = [Outgoing("news", Publication(data("1")), options, once)] * 2
            results = await engine.broker.publish_many(sent)
            assert not [result for result in results if isinstance(result, Exception)]
    await engine.received("news", 6)
    assert len((await engine.broker.history("news", limit=2, reverse=True)).publications) == 2
    for options in KINDS_OF_MAPS:
        for how in (
            {"ttl": 0},
            {"ttl": 1, "key_mode": "if_exists"},
            {"once": Once("m"), "expect": 0},
        ):
            await make(engine, options.map, "a", 1, options, **how)
        assert await engine.maps.due(1) == []
        assert (await make(engine, options.map, "a", None, options)).kept
        assert (await engine.maps.page(options.map)).size == 0
    await engine.broker.renew_epoch("news", (await position_of(engine.broker, "news")).epoch)
    await engine.broker.remove_history("news")
    await engine.engine.presence.add("news", [_SOMEBODY], 10)
    assert len(await engine.engine.presence.get("news")) == 1
    await engine.engine.presence.remove("news", _SOMEBODY.client)
    assert await engine.channels() == ["news"]
    assert [status.uid for status in await engine.cluster.statuses()] == [NODE.uid]
    assert await engine.cluster.claim("job", NODE.uid, 10) == NODE.uid
    await engine.cluster.ask("survey", data("1"), 10)
    await engine.cluster.answer("survey", b"1")
    assert await engine.cluster.answers("survey", 0) == [b"1"]
    assert (await engine.limits.block({"17": time.time() + 60})).number == 1
    assert await engine.limits.blocked((await engine.limits.block({"17": 0})).version) is None
    assert len(await engine.limits.add_debts([Debt("*", "17", 5.0, 10.0)], 1.0)) == 1
    assert (await engine.limits.place_connections(NODE.uid, {"17": 1}, 2)).here == [1]
    await engine.cluster.round_trip()
    with pytest.raises(EngineUnavailable, match="NOPERM"):
        await engine.layer.bus.call(0, ("GET", "of-another-site"))
