"""Connection: commands to one Redis from one event loop, any number at a time.

The commands of one turn of the loop leave in one write, and the replies that have arrived are
delivered in one turn. That makes a command cheap. No command is sent twice, because a repeated
publish is published twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Argument, Reply, Script, Wait
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import Link, NoScript, encode
from realtime.redis.replicas import ReplicaWaits

R = TypeVar("R")
Send = Callable[[Link], asyncio.Future[Reply]]
"""Sends a command on a link."""


class Connection:
    """Connects when it is needed, and again after a loss. Belongs to one event loop."""

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        self._host = host
        self._timeouts = timeouts
        self._link: Link | None = None
        self._waits: ReplicaWaits | None = None
        """Of the last link on which a caller waited for replicas."""
        self._attempt: asyncio.Task[None] | None = None
        self._waiting: list[tuple[asyncio.Future[asyncio.Future[Reply]], Send]] = []
        """Callers that wait for a link, in order, and what each will send."""
        self._closed = False

    async def execute(self, *args: Argument) -> Reply:
        """Send a command and return its reply.

        Commands leave in the order in which the calls begin, also when they wait for a link.

        Raises:
            EngineUnavailable: Redis is away or refused, or there is an error anywhere in the reply.
            NoReply: none came in time; the command may have taken effect.
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

    async def run_confirmed(
        self, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument], wait: Wait
    ) -> R:
        """Run a script, and wait until replicas have what it wrote.

        Order and errors as with `run`.

        Raises:
            TooFewReplicas: a NoReply; Redis ran the script, and may lose what it wrote.
        """
        reply, shortage = await self._confirmed(
            lambda link: _send(link, script, keys, arguments), wait
        )
        if isinstance(reply, NoScript):
            command = script.by_text(keys, arguments)
            reply, shortage = await self._confirmed(lambda link: link.send(encode(command)), wait)
        error = reply if isinstance(reply, EngineUnavailable) else shortage
        if error is not None:
            try:
                raise error
            finally:
                del error, reply, shortage
        result: R = reply
        return result

    async def _confirmed(self, send: Send, wait: Wait) -> tuple[Reply, EngineUnavailable | None]:
        """Return the reply of what `send` sends, and why replicas may not have it."""

        def send_both(link: Link) -> asyncio.Future[Reply]:
            reply = send(link)
            waits = self._waits
            if waits is None or waits.link is not link:
                waits = self._waits = ReplicaWaits(self._host, link)
            return asyncio.gather(reply, waits.confirmed(wait))

        link = self._link
        if link is None or link.lost is not None:
            replies = await (await self._connect(send_both))
        else:
            replies = await send_both(link)
        return (replies, None) if isinstance(replies, EngineUnavailable) else tuple(replies)

    async def close(self) -> None:
        """Fail the callers that wait, and close; bounded in time. Later calls fail, too."""
        self._closed = True
        attempt, link = self._attempt, self._link
        if attempt is not None:
            attempt.cancel()
            await asyncio.wait([attempt])
        self._refuse(self._host.unavailable("closed here"))
        if link is not None:
            await link.close("closed here")

    async def _connect(self, send: Send) -> asyncio.Future[Reply]:
        """Wait for a link, call `send` with it, and return its future.

        All waiting callers send in one turn of the loop: if each sent when it wakes up, a caller
        that comes in between would overtake them. The attempt to connect is a task of its own,
        because the caller that began it may be cancelled.
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
        """Fail every caller that waits for a link."""
        waiting, self._waiting = self._waiting, []
        for caller, _ in waiting:
            if caller.done():
                continue
            if not isinstance(error, EngineUnavailable):
                caller.set_exception(error)
                continue
            # as a reply: asyncio logs exceptions that a cancelled caller did not retrieve
            reply = caller.get_loop().create_future()
            reply.set_result(EngineUnavailable(str(error)))
            caller.set_result(reply)


def _send(
    link: Link, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument]
) -> asyncio.Future[Reply]:
    if script.sha in link.scripts:
        return link.send(encode(script.by_digest(keys, arguments)))
    # the first call on each link brings the text, so that after a restart of Redis a thousand
    # callers do not learn one by one that the script is unknown
    link.scripts.add(script.sha)
    return link.send(encode(script.by_text(keys, arguments)))
