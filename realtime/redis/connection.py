"""Connection: commands to one Redis from one event loop, as many at a time as there are callers.

Everything that is asked for in one turn of the loop leaves in one write, and everything that
has arrived is handed over at once: that is what makes a command cheap. Nothing is ever sent
twice, because a publish that is repeated is published twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Argument, Reply, Script
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import Link, NoScript, encode

R = TypeVar("R")
Send = Callable[[Link], asyncio.Future[Reply]]
"""Sends a command on a link."""


class Connection:
    """Connects when it is needed, and again after it was lost. Belongs to one event loop."""

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        self._host = host
        self._timeouts = timeouts
        self._link: Link | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._waiting: list[tuple[asyncio.Future[asyncio.Future[Reply]], Send]] = []
        """Who waits for the attempt, in order, and what each will send."""
        self._closed = False

    async def execute(self, *args: Argument) -> Reply:
        """Send a command and wait for its reply.

        Commands leave in the order in which the calls begin, those that wait for a connection
        included.

        Raises:
            EngineUnavailable: Redis is away, too slow, or refused; with an error anywhere in
                the reply, too. If there was no answer, the command may have been done.
        """
        link = self._link
        if link is None or link.lost is not None:
            reply = await (await self._connect(lambda link: link.send(encode(args))))
        else:
            reply = await link.send(encode(args))
        if isinstance(reply, EngineUnavailable):
            try:
                raise reply
            finally:
                del reply  # it holds this frame by its traceback
        return reply

    async def run(
        self, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument]
    ) -> R:
        """Run a script and return its reply. Order and errors as with `execute`."""
        link = self._link
        if link is None or link.lost is not None:
            reply = await (await self._connect(lambda link: _send(link, script, keys, arguments)))
        else:
            reply = await _send(link, script, keys, arguments)
        if isinstance(reply, NoScript):
            reply = await self.execute(*script.by_text(keys, arguments))
        if isinstance(reply, EngineUnavailable):
            try:
                raise reply
            finally:
                del reply
        result: R = reply
        return result

    async def close(self) -> None:
        """Fail what waits, and close; bounded in time. Nothing can be sent any more."""
        self._closed = True
        attempt, link = self._attempt, self._link
        if attempt is not None:
            attempt.cancel()
            await asyncio.wait([attempt])
        self._refuse(self._host.unavailable("closed here"))
        if link is not None:
            await link.close("closed here")

    async def _connect(self, send: Send) -> asyncio.Future[Reply]:
        """What `send` gives, called with the link of the attempt under way, or of a new one.

        It is called when the link is there, in the turn of all who wait: were they to send when
        they wake up, who comes in between would overtake them. The attempt is a task, because
        the caller that began it may be cancelled.
        """
        if self._closed:
            raise self._host.unavailable("closed here")
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append((waiting, send))
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.create_task(self._open())
        sent: asyncio.Future[Reply] = await waiting
        return sent

    async def _open(self) -> None:
        try:
            self._link = link = await Link.open(self._host, self._timeouts)
            waiting, self._waiting = self._waiting, []
            for caller, send in waiting:
                if caller.done():
                    continue  # cancelled
                try:
                    caller.set_result(send(link))
                except Exception as error:  # it is the caller's
                    caller.set_exception(error)
        except Exception as error:
            self._refuse(error)
        finally:
            self._attempt = None

    def _refuse(self, error: Exception) -> None:
        """Give everybody who waits for a link the reason why there is none."""
        waiting, self._waiting = self._waiting, []
        for caller, _ in waiting:
            if caller.done():
                continue
            if not isinstance(error, EngineUnavailable):
                caller.set_exception(error)
                continue
            # as a reply, so nobody is told of an exception that a cancelled caller did not fetch
            reply = caller.get_loop().create_future()
            reply.set_result(EngineUnavailable(str(error)))
            caller.set_result(reply)


def _send(
    link: Link, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument]
) -> asyncio.Future[Reply]:
    if script.sha in link.scripts:
        return link.send(encode(script.by_digest(keys, arguments)))
    # the first of each link brings the text, so a thousand callers after a restart of Redis
    # do not learn one by one that the script is unknown
    link.scripts.add(script.sha)
    return link.send(encode(script.by_text(keys, arguments)))
