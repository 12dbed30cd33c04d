"""Replicas: wait until enough of them have what was written on a link.

WAIT counts the replicas that have all commands sent before it on its connection. Redis runs nothing
else of that connection meanwhile, so there is one WAIT at a time:

    confirmed ─► _waiting ─► WAIT, behind the commands of this turn of the loop ─► _served
    reply ─► callers in _served; then the next WAIT, for those that came in between

Invariants:

- A caller is in `_waiting` or in `_served` until its future is done.
- `_busy` is set as long as one of them is not empty: a WAIT is under way, or will be sent.
"""

from __future__ import annotations

import asyncio

from realtime.errors import EngineUnavailable, NoReply
from realtime.redis.commands import Reply, Wait
from realtime.redis.hosts import Host
from realtime.redis.link import INTERRUPTED, Link, encode


class TooFewReplicas(NoReply):
    """Redis ran the command, and may lose it in a failover: too few replicas have it."""


def shortage(wait: Wait, host: Host, reply: Reply) -> NoReply | None:
    """Return the exception for a reply to WAIT; None if enough replicas are there.

    Args:
        wait: what was asked for.
        host: the Redis.
        reply: the number of replicas, or an exception: the write may be lost then, too.
    """
    if isinstance(reply, NoReply):
        return NoReply(str(reply))  # each caller gets its own: tracebacks grow
    if isinstance(reply, EngineUnavailable):
        return TooFewReplicas(str(reply))
    if isinstance(reply, int):
        if reply >= wait.replicas:
            return None
        reply = f"{reply} of {wait.replicas} replicas confirmed it within {wait.milliseconds} ms"
    return TooFewReplicas(str(host.unavailable(reply)))


class ReplicaWaits:
    """See the module. For one link."""

    def __init__(self, host: Host, link: Link) -> None:
        self.link = link
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[asyncio.Future[NoReply | None], Wait]] = []
        self._served: list[tuple[asyncio.Future[NoReply | None], Wait]] = []
        self._busy = False

    def confirmed(self, wait: Wait) -> asyncio.Future[NoReply | None]:
        """Wait until replicas have all commands that were sent so far.

        Returns:
            A future of None, or of the exception that says why this is not known.
        """
        future = self._loop.create_future()
        self._waiting.append((future, wait))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._send)
        return future

    def _send(self) -> None:
        try:
            # the last is settled first, and callers that repeat their command must keep their order
            self._served, self._waiting = self._waiting[::-1], []
            strongest = max(wait for _, wait in self._served)
            reply = self.link.send(encode(strongest.command()))
            reply.add_done_callback(self._on_reply)
        except EngineUnavailable as error:
            self._settle(error)
        except BaseException:
            self._interrupted()
            raise

    def _on_reply(self, reply: asyncio.Future[Reply]) -> None:
        try:
            self._settle(reply.result())
        except BaseException:
            self._interrupted()
            raise

    def _settle(self, reply: Reply) -> None:
        """Give callers the reply, and send the next WAIT for those that came meanwhile."""
        while self._served:
            future, wait = self._served[-1]
            if not future.done():
                future.set_result(shortage(wait, self._host, reply))
            self._served.pop()
        self._busy = bool(self._waiting)
        if self._busy:
            self._loop.call_soon(self._send)

    def _interrupted(self) -> None:
        self.link.abort(INTERRUPTED)
        self._served += self._waiting
        self._waiting = []
        self._settle(self._host.no_reply(INTERRUPTED))
