"""Retries: reads of streams that failed are tried again one at a time, for all streams of a shard.

While the engine is away or loads its data, the read of every stream fails, and each failure may
cost the connection that all of them share. So only the first attempt of a follower is free. Further
ones queue, and while attempts fail, each waits before it reads:

    free attempt ── fails ──► queue ── its turn ──► pause ──► attempt ── fails ──► queue
                                            └─ none, when the attempt before succeeded

The first attempt that succeeds lets the others through without a pause. A stream of its own that
cannot be read, because its key is damaged, delays only others that failed, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator

from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName

logger = logging.getLogger("realtime.node")

MIN_DELAY = 0.1
MAX_DELAY = 2.0
"""Seconds before an attempt while attempts fail. They double with each failure in a row: of one
stream, or of those that queued."""


class Retries:
    """See the module. The streams of one shard share it; it belongs to an event loop."""

    def __init__(self) -> None:
        self.reads = 0
        """Streams that were read, each counted once however often it was tried again."""
        self._turn = asyncio.Lock()
        self._failing = False
        """Whether the last attempt failed, of whatever stream."""
        self._failed_in_queue = 0
        """Attempts that queued and failed since the last one that succeeded."""

    @contextlib.asynccontextmanager
    async def attempt(self, channel: ChannelName, failures: int) -> AsyncIterator[None]:
        """Read a stream within this block.

        Args:
            channel: whose stream it is; for the log, which gets the first failure of a row.
            failures: attempts for this stream that failed one after another until now.

        Raises:
            EngineUnavailable: raised in the block.
        """
        self.reads += not failures
        async with contextlib.AsyncExitStack() as turn:
            if failures:
                await turn.enter_async_context(self._turn)
                if self._failing:
                    in_a_row = max(failures - 1, self._failed_in_queue)
                    delay = min(MIN_DELAY * 2 ** min(in_a_row, 10), MAX_DELAY)
                    await asyncio.sleep(delay * random.uniform(0.5, 1))
            try:
                yield
            except EngineUnavailable as error:
                if not self._failing:
                    about = {"channel": channel}
                    logger.warning(
                        "Could not read the stream of %r: %s", channel, error, extra=about
                    )
                self._failing = True
                self._failed_in_queue += bool(failures)
                raise
            self._failing = False
            self._failed_in_queue = 0
