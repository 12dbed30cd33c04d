"""Sessions are read though functions of the site keep all their threads busy."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from realtime.config.reader import read
from realtime.hooks import login
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import Caller, Handshake

WORKERS = 2


async def test_login_that_ended_ends_while_slow_hooks_are_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, busy = threading.Event(), threading.Semaphore(0)

    def slow(request: Any) -> None:
        busy.release()
        release.wait(10)

    registry = Registry()
    registry.methods["slow"] = slow
    monkeypatch.setattr(login, "_load", lambda key: None)  # the user is not active any more
    options = {"session_authentication": True, "hook_workers": WORKERS, "hook_timeout": 2.0}
    hooks = SiteHooks(read(options)[0], registry)
    caller = Caller("C", "17", Handshake({"cookie": "sessionid=of-user-17"}, "site.example"))
    calls = [asyncio.create_task(hooks.rpc(caller, "slow", b"")) for _ in range(WORKERS)]
    for _ in calls:
        assert await asyncio.to_thread(busy.acquire, timeout=10)

    try:
        assert await hooks.refresh(caller, "login") is None
        assert await hooks.connect(caller, b"", "", "") is None
    finally:
        release.set()
        await asyncio.gather(*calls, return_exceptions=True)
        await hooks.close()
