"""Connection: commands to one Redis from one event loop, as many at a time as there are callers.

Everything that is asked for in one turn of the loop leaves in one write, and everything that
has arrived is handed over at once: that is what makes a command cheap. Nothing is ever sent
twice, because a publish that is repeated is published twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from realtime.errors import EngineUnavailable
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import Argument, Link, NoScript, Reply, encode
from realtime.redis.script import Script

__all__ = ["Argument", "Connection", "Reply"]


class Connection:
    """Connects when it is needed, and again after it was lost. Belongs to one event loop."""

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        self._host = host
        self._timeouts = timeouts
        self._link: Link | None = None
        self._attempt: asyncio.Task[Link | EngineUnavailable] | None = None
        self._closed = False

    async def execute(self, *args: Argument) -> Reply:
        """Send a command and wait for its reply.

        While connected, commands leave in the order in which the calls begin.

        Raises:
            EngineUnavailable: Redis is away, too slow, or refused; with an error anywhere in
                the reply, too. If there was no answer, the command may have been done.
        """
        link = self._link
        if link is None or link.lost is not None:
            link = await self._connect()
        reply = await link.send(encode(args))
        if isinstance(reply, EngineUnavailable):
            try:
                raise reply
            finally:
                del reply  # it holds this frame by its traceback
        return reply

    async def run(
        self, script: Script, keys: Sequence[Argument], args: Sequence[Argument]
    ) -> Reply:
        """Run a script. Order and errors as with `execute`."""
        link = self._link
        if link is None or link.lost is not None:
            link = await self._connect()
        if script.sha in link.scripts:
            command = encode(("EVALSHA", script.sha, len(keys), *keys, *args))
        else:
            # the first of each link brings the text, so a thousand callers after a restart
            # of Redis do not learn one by one that the script is unknown
            link.scripts.add(script.sha)
            command = encode(("EVAL", script.text, len(keys), *keys, *args))
        reply = await link.send(command)
        if isinstance(reply, NoScript):
            return await self.execute("EVAL", script.text, len(keys), *keys, *args)
        if isinstance(reply, EngineUnavailable):
            try:
                raise reply
            finally:
                del reply
        return reply

    async def close(self) -> None:
        """Fail what waits, and close; bounded in time. Nothing can be sent any more."""
        self._closed = True
        attempt, link = self._attempt, self._link
        if attempt is not None:
            attempt.cancel()
            await asyncio.wait([attempt])
        if link is not None:
            await link.close("closed here")

    async def _connect(self) -> Link:
        """The link of the attempt that is under way, or of a new one.

        The attempt is a task, because the caller that began it may be cancelled.
        """
        if self._closed:
            raise self._host.unavailable("closed here")
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = asyncio.create_task(self._open())
        await asyncio.wait([attempt])
        result = None if attempt.cancelled() else attempt.result()
        if isinstance(result, Link):
            return result
        raise EngineUnavailable(str(result or self._host.unavailable("closed here")))

    async def _open(self) -> Link | EngineUnavailable:
        try:
            self._link = await Link.open(self._host, self._timeouts)
            return self._link
        except EngineUnavailable as error:
            return error
        finally:
            self._attempt = None
