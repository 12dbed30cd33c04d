"""What the tests of channel layers share."""

from __future__ import annotations

import asyncio
from typing import Any


async def receive(layer: Any, channel: str) -> Any:
    async with asyncio.timeout(60):
        return await layer.receive(channel)
