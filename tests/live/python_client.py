"""The published Python client, and how it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from centrifuge import (
    Client,
    PublicationContext,
    SubscribedContext,
    SubscriptionEventHandler,
)

from tests.conftest import connection_token


class SubscriptionEvents(SubscriptionEventHandler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.subscribed: asyncio.Queue[SubscribedContext] = asyncio.Queue()
        self.published: asyncio.Queue[PublicationContext] = asyncio.Queue()

    async def on_subscribed(self, ctx: SubscribedContext) -> None:
        self.subscribed.put_nowait(ctx)

    async def on_publication(self, ctx: PublicationContext) -> None:
        self.published.put_nowait(ctx)


@asynccontextmanager
async def python_client(
    url: str, *, token: str | None = None, **options: Any
) -> AsyncIterator[Client]:
    """A client, by default of user 17, not connected yet; `options` go to the library.

    It closes its socket in a task of its own, for which `disconnect` does not wait.
    """
    client = Client(url, token=token or connection_token("17"), proxy=None, **options)
    try:
        yield client
    finally:
        before = asyncio.all_tasks()
        await client.disconnect()
        if closing := asyncio.all_tasks() - before:
            await asyncio.wait(closing)
