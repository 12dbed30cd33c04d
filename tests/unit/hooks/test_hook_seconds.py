"""How long the site took to answer is counted for each kind of hook."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.reader import read
from realtime.errors import Error, PermissionDenied
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import NO_HANDSHAKE, Caller

CALLER = Caller("C", "17", NO_HANDSHAKE)


def refuse(*_: Any) -> None:
    raise PermissionDenied


async def test_each_answer_is_counted_also_a_refusal() -> None:
    registry = Registry()
    registry.methods["refused"] = refuse
    registry.methods["answered"] = lambda request: {}
    registry.add_pattern(registry.subscribe, "*", lambda request: None)
    registry.add_single("message", lambda request: None)
    site = SiteHooks(read({})[0], registry)

    with pytest.raises(Error):
        await site.rpc(CALLER, "refused", b"")
    await site.rpc(CALLER, "answered", b"")
    await site.subscribe(CALLER, "news", "")
    await site.message(CALLER, b"{}")

    counts = {kind: sum(each.buckets) for kind, each in site.seconds.items()}
    assert counts == {
        "connect": 0,
        "refresh": 0,
        "subscribe": 1,
        "publish": 0,
        "rpc": 2,
        "message": 1,
    }
    await site.close()
