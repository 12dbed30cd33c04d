"""Connection: commands to one Redis from one event loop, any number at a time.

The commands of one turn of the loop leave in one write, and the replies that have arrived are
delivered in one turn. That makes a command cheap. No command is sent twice, because a repeated
publish is published twice; but for scripts that Redis forgot and did not run.

States: away, attempting, in use.

    away ── call ──► attempting ── a link is open ──► in use
    in use ── a script was forgotten ──► attempting ── every reply is in ──► in use
    in use ── link lost ──► away

Calls send at once while a link is in use, and wait otherwise. When the link is in use again, they
send in one turn of the loop: first the scripts that Redis forgot, with their text, then the calls
that came meanwhile. So none overtakes another, although Redis ran what was under way already. If
another process brought the script in between, Redis ran a later call with the same first key: then
the earlier one is refused.
Calls that wait for replicas learn later that Redis forgot a script: they keep the order among
themselves, and other calls do so, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Argument, Calls, Reply, Request, ScriptCall, Wait, in_full
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import Link, NoScript, encode
from realtime.redis.master import Master
from realtime.redis.replicas import ReplicaWaits

Send = Callable[[Link], asyncio.Future[Reply]]
"""Sends a command on a link."""
Waiting = tuple[asyncio.Future[asyncio.Future[Reply]], Send, Argument]
"""A caller that waits for a link, what it will send, and the first key of its script."""


class Connection(Calls):
    """Connects when it is needed, and again after a loss. Belongs to one event loop."""

    def __init__(self, host: Host, timeouts: Timeouts, master: Master | None = None) -> None:
        """`master`: shared with others; None: of this connection alone."""
        self.host = host
        """The Redis."""
        self._master = master or Master(host, timeouts)
        self._link: Link | None = None
        """In use, unless it is lost."""
        self._draining: Link | None = None
        """Of the attempt: its replies are awaited, or the callers that wait are about to send."""
        self._waits: ReplicaWaits | None = None
        """Of the last link on which a caller waited for replicas."""
        self._attempt: asyncio.Task[None] | None = None
        self._waiting: deque[Waiting] = deque()
        """Callers that wait for a link, in order, and what each will send."""
        self._forgotten: deque[Waiting] = deque()
        """Those whose script Redis forgot: they began before any in `_waiting`."""
        self._closed = False

    async def call(self, request: Request, wait: Wait | None = None) -> Reply:
        send = self._sending(partial(_send, request), wait)
        link = self._link
        try:
            if link is None or link.lost is not None:
                return _checked(await (await self._wait_for_link(self._waiting, send)), wait)
            reply = _checked(await send(link), wait)
            if self._forgotten and link is self._draining:
                self._refuse_overtaken(_first_key(request))
            return reply
        except NoScript:
            text = encode(in_full(request))
        send = self._sending(lambda link: link.send(text), wait)
        return _checked(await (await self._repeat(send, _first_key(request))), wait)

    async def execute_asking(self, *args: Argument) -> Reply:
        """As `execute`, at the server of a cluster to which the slot of the command is moving."""

        def send(link: Link) -> asyncio.Future[Reply]:
            link.send(encode((b"ASKING",)))
            return link.send(encode(args))

        link = self._link
        if link is None or link.lost is not None:
            return _checked(await (await self._wait_for_link(self._waiting, send)))
        return _checked(await send(link))

    def _sending(self, send: Send, wait: Wait | None) -> Send:
        """Return what sends as `send`; to a reply it adds why replicas may not have it."""
        if wait is None:
            return send

        def send_both(link: Link) -> asyncio.Future[Reply]:
            reply = send(link)
            waits = self._waits
            if waits is None or waits.link is not link:
                waits = self._waits = ReplicaWaits(self.host, link)
            return asyncio.gather(reply, waits.confirmed(wait))

        return send_both

    @property
    def is_idle(self) -> bool:
        """Whether no caller waits for a link or a reply."""
        link = self._link
        return self._attempt is None and (link is None or link.newest_pending() is None)

    async def close(self) -> None:
        """Fail the callers that wait, and close; bounded in time. Later calls fail, too."""
        self._closed = True
        attempt = self._attempt
        if attempt is not None:
            attempt.cancel()
            await asyncio.wait([attempt])
        self._refuse(self.host.unavailable("closed here"))
        for link in (self._draining, self._link):
            if link is not None:
                await link.close("closed here")

    async def _repeat(self, send: Send, key: Argument) -> asyncio.Future[Reply]:
        """As `_connect`, for a script that Redis forgot.

        Those behind it on the link were forgotten, too, and wake up in their order. So nothing is
        sent until all of them are here.
        """
        if self._link is not None:
            self._link.forget_scripts()
        return await self._wait_for_link(self._forgotten, send, key)

    async def _wait_for_link(
        self, queue: deque[Waiting], send: Send, key: Argument = b""
    ) -> asyncio.Future[Reply]:
        """Wait for a link, call `send` with it, and return its future.

        All waiting callers send in one turn of the loop: if each sent when it wakes up, a caller
        that comes in between would overtake them. The attempt to connect is a task of its own,
        because the caller that began it may be cancelled.
        """
        if self._closed:
            raise self.host.unavailable("closed here")
        waiting = asyncio.get_running_loop().create_future()
        queue.append((waiting, send, key))
        if self._attempt is None or self._attempt.done():
            if self._link is not None:
                self._draining, self._link = self._link, None
            self._attempt = asyncio.create_task(self._open())
        sent: asyncio.Future[Reply] = await waiting
        return sent

    async def _open(self) -> None:
        """Make a link ready, the last one unless it is lost, and let the callers that wait send."""
        try:
            link = self._draining
            if link is not None and link.lost is None:
                await self._every_reply(link)
            if link is None or link.lost is not None:
                link = self._draining = await self._master.open(Link)
            while (waiting := self._next_waiting()) is not None:
                caller, send, _ = waiting
                if caller.done():
                    continue  # cancelled
                try:
                    caller.set_result(send(link))
                except Exception as error:  # it is the caller's
                    caller.set_exception(error)
            self._link, self._draining = link, None
        except Exception as error:
            self._refuse(error)
        finally:
            self._attempt = None

    async def _every_reply(self, link: Link) -> None:
        """Wait until every caller has the reply to what it sent, and those of forgotten scripts
        wait in their order."""
        while (newest := link.newest_pending()) is not None:
            await asyncio.wait([newest])
        waits = self._waits
        if waits is not None and waits.link is link:  # callers wake up behind the last WAIT
            await asyncio.gather(waits.confirmed(Wait(0, 1)))

    def _next_waiting(self) -> Waiting | None:
        """Remove the caller that waits longest, and return it; None if there is none."""
        queue = self._forgotten or self._waiting
        return queue.popleft() if queue else None

    def _refuse(self, error: Exception) -> None:
        """Fail every caller that waits for a link."""
        while (waiting := self._next_waiting()) is not None:
            _fail(waiting, error)

    def _refuse_overtaken(self, key: Argument) -> None:
        """Fail those whose script Redis forgot, before it ran a later one with this first key."""
        error = self.host.unavailable("a later call overtook this one")
        for waiting in [each for each in self._forgotten if each[2] == key]:
            self._forgotten.remove(waiting)
            _fail(waiting, error)


def _first_key(request: Request) -> Argument:
    return request.keys[0] if isinstance(request, ScriptCall) else b""


def _fail(waiting: Waiting, error: Exception) -> None:
    caller = waiting[0]
    if caller.done():
        return
    if not isinstance(error, EngineUnavailable):
        caller.set_exception(error)
        return
    # as a reply: asyncio logs exceptions that a cancelled caller did not retrieve
    reply = caller.get_loop().create_future()
    reply.set_result(EngineUnavailable(str(error)))
    caller.set_result(reply)


def _checked(reply: Reply, wait: Wait | None = None) -> Reply:
    """Return a reply, or raise it if it is an error. The caller has no variable of it."""
    if wait is not None and type(reply) is list:
        answer, shortage = reply
        reply = answer if isinstance(answer, EngineUnavailable) else shortage or answer
        del answer, shortage
    if isinstance(reply, EngineUnavailable):
        try:
            raise reply
        finally:
            del reply  # it holds this frame by its traceback
    return reply


def _send(request: Request, link: Link) -> asyncio.Future[Reply]:
    if not isinstance(request, ScriptCall):
        return link.send(encode(request))
    script, keys, arguments = request
    if script.sha in link.scripts:
        return link.send(encode(script.by_digest(keys, arguments)))
    # the first call on each link brings the text, so that after a restart of Redis a thousand
    # callers do not learn one by one that the script is unknown
    link.remember_script(script.sha)
    return link.send(encode(script.by_text(keys, arguments)))
