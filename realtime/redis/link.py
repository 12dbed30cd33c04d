"""Link: one connection to Redis. Commands go out in batches, replies come back in order.

    send ─► unsent ─► one write per turn of the loop ─► Redis
    reply ◄─ pending, oldest first ◄─ everything that has arrived ◄─ Redis

States: connecting, in use, lost. `open` returns a link in use; `abort` makes it lost, for one of
these reasons:

- the oldest command has had no reply for the time-out,
- something arrives that is not a reply, or that no command asked for,
- Redis says that it is not the master: another connection may reach the one that is,
- the Sentinels name another master; see `master`,
- Redis or the network closed the connection,
- an exception was raised from outside, by a signal handler, between a command and its place in
  the queue.

Invariants:

- A reply belongs to the oldest command that has none. A cancelled caller keeps its place in the
  queue.
- When that is in doubt, the link is lost as a whole: every caller that waits gets the reason, once,
  and the link is never used again. So no reply is ever taken for that of another command.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections import deque
from collections.abc import Callable
from typing import Self, TypeVar, cast

import hiredis

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Command, Reply
from realtime.redis.hosts import Host, Place, Timeouts
from realtime.redis.redirects import Redirected

L = TypeVar("L", bound="Link")

# its stub knows tuples of one element only, and no result
encode: Callable[[Command], bytes] = hiredis.pack_command  # type: ignore[assignment]
"""The bytes of a command."""

MAX_PENDING_BYTES = 16 * 1024 * 1024
"""Bytes of commands that may wait for replies; beyond that no command is accepted."""

CLOSE_TIMEOUT = 1.0
"""Seconds to wait until an aborted transport is closed."""

KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds until a silent connection is probed, seconds between probes, probes until it is lost."""

INTERRUPTED = "interrupted"
"""Why a link is lost in which an exception was raised from outside, by a signal handler."""

MASTER_ELSEWHERE = ("READONLY", "LOADING", "MASTERDOWN")
"""Errors of a server that is not the master now: a new connection may reach the one that is."""


def master_is_elsewhere(text: str) -> bool:
    """Return whether an error of Redis is one of MASTER_ELSEWHERE.

    A script wraps the errors of its commands: "ERR Error running script ...: -READONLY ...".
    """
    return text.startswith(MASTER_ELSEWHERE) or any(
        f"-{code} " in text for code in MASTER_ELSEWHERE
    )


FORGETFUL_TIME = 60.0
"""Seconds for which scripts are sent with their text after Redis forgot one.

Where another process brings the text back, a script that Redis still refused would be overtaken.
"""


class NoScript(EngineUnavailable):
    """Redis does not know the script, and did nothing."""


class Link(asyncio.Protocol):
    """See the module. Use `open` to get one."""

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        self.lost: str | None = None
        """Why it cannot be used any more; None while it can."""
        self.scripts: set[str] = set()
        """Digests of the scripts that are sent without their text, because Redis knows it."""
        self._texts_until = 0.0
        self._host = host
        self._timeouts = timeouts
        self._answer_timeout = timeouts.answer
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when its transport is closed."""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unsent: list[bytes] = []
        self._sent_at = 0.0
        self._pending: deque[tuple[asyncio.Future[Reply], int, float]] = deque()
        self._pending_bytes = 0
        self._errors: list[str] = []
        self._reader = hiredis.Reader(replyError=functools.partial(_note, self._errors))

    @classmethod
    async def open(
        cls,
        host: Host,
        timeouts: Timeouts,
        place: Place | None = None,
        deadline: float | None = None,
    ) -> Self:
        """Return a link that is connected and authenticated.

        Args:
            place: where to connect to; None: to the host's own place.
            deadline: loop time; None: after the time-out.

        Raises:
            EngineUnavailable: Redis cannot be reached until the deadline, or refuses.
        """
        if deadline is None:
            deadline = asyncio.get_running_loop().time() + timeouts.connect
        try:
            async with asyncio.timeout_at(deadline):
                link = await _connect(host, place or host.place, lambda: cls(host, timeouts))
        except TimeoutError:
            raise host.unavailable(f"no connection within {timeouts.connect:g} s") from None
        except (OSError, ValueError, TypeError) as error:  # also: a wrong host name or TLS file
            raise host.unavailable(f"no connection: {error}") from error
        try:
            async with asyncio.timeout_at(deadline):
                await link._authenticate()
        except TimeoutError:
            link.abort("no handshake in time")
            raise host.unavailable(f"no handshake within {timeouts.connect:g} s") from None
        except BaseException:
            link.abort("no handshake")
            raise
        return link

    async def _authenticate(self) -> None:
        commands = self._host.handshake()
        replies = [self.send(encode(command)) for command in commands]
        for command, reply in zip(commands, replies, strict=True):
            answer = await reply
            if self.lost is not None:
                raise self._host.unavailable(self.lost)
            self._host.check(command, answer)

    def send(self, command: bytes) -> asyncio.Future[Reply]:
        """Queue an encoded command; it leaves in this turn of the loop.

        Returns:
            A future of the reply. An EngineUnavailable is its value, not its exception, because
            asyncio logs exceptions that a cancelled caller did not retrieve.

        Raises:
            EngineUnavailable: too many commands wait for replies.
        """
        future = self._loop.create_future()
        if self.lost is not None:
            future.set_result(self._host.unavailable(self.lost))
            return future
        if self._pending_bytes > MAX_PENDING_BYTES:
            raise self._host.unavailable("too many commands wait for replies")
        try:
            self._write(command)
            size = len(command)
            self._pending.append((future, size, self._sent_at))
            self._pending_bytes += size
        except BaseException:
            self.abort(INTERRUPTED)
            raise
        return future

    def remember_script(self, sha: str) -> None:
        """Send a script without its text from now on, unless Redis forgot one lately."""
        if self._loop.time() >= self._texts_until:
            self.scripts.add(sha)

    def forget_scripts(self) -> None:
        """Send scripts with their text for some time: Redis forgot one, and may do so again."""
        self.scripts.clear()
        self._texts_until = self._loop.time() + FORGETFUL_TIME

    def newest_pending(self) -> asyncio.Future[Reply] | None:
        """Return the future of the newest command without a reply; None if there is none."""
        return next((future for future, _, _ in reversed(self._pending) if not future.done()), None)

    def _write(self, command: bytes) -> None:
        if not self._unsent:
            self._sent_at = self._loop.time()
            self._loop.call_soon(self._flush)
        self._unsent.append(command)

    def _flush(self) -> None:
        try:
            unsent, self._unsent = self._unsent, []
            if self._transport is not None and unsent:
                self._transport.write(b"".join(unsent))
                if self._timer is None and self._pending:
                    self._timer = self._loop.call_at(
                        self._pending[0][2] + self._answer_timeout, self._check_late
                    )
        except BaseException:
            self.abort(INTERRUPTED)
            raise

    def _check_late(self) -> None:
        self._timer = None
        if self._pending:
            deadline = self._pending[0][2] + self._answer_timeout
            if deadline <= self._loop.time():
                self.abort(f"no answer within {self._answer_timeout:g} s")
            else:
                self._timer = self._loop.call_at(deadline, self._check_late)

    def abort(self, reason: str) -> None:
        """Close at once. Every caller that waits gets a NoReply with the reason."""
        if self.lost is not None:
            return
        self.lost = reason
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._unsent.clear()
        while self._pending:
            future = self._pending.popleft()[0]
            if not future.done():
                future.set_result(self._host.no_reply(reason))

    async def close(self, reason: str) -> None:
        """As `abort`, and wait until the transport is closed."""
        self.abort(reason)
        await asyncio.wait([self.gone], timeout=CLOSE_TIMEOUT)

    # called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's transport is not one by its type

    def data_received(self, data: bytes) -> None:
        pending, errors, gets = self._pending, self._errors, self._reader.gets
        elsewhere = None
        try:
            self._reader.feed(data)
            while (reply := gets()) is not False:
                future, size, _ = pending.popleft()
                self._pending_bytes -= size
                if errors:
                    reply, error = self._refusal()
                    elsewhere = elsewhere or error
                if not future.done():
                    future.set_result(reply)
        except (hiredis.HiredisError, IndexError) as error:
            self.abort(f"not a reply of Redis: {error}")
        except BaseException:
            self.abort(INTERRUPTED)
            raise
        if elsewhere is not None:
            self.abort(elsewhere)

    def _refusal(self) -> tuple[EngineUnavailable, str | None]:
        """Return the exception for a reply with errors; and a reason to close the link, or None."""
        text = self._errors[0]
        self._errors.clear()
        if text.startswith("NOSCRIPT"):
            return NoScript(str(self._host.unavailable(text))), None
        if (redirected := Redirected.of(self._host, text)) is not None:
            return redirected, None
        error = self._host.unavailable(text)
        return error, text if master_is_elsewhere(text) else None

    def connection_lost(self, error: Exception | None) -> None:
        self.abort(f"connection lost: {error}" if error else "connection closed by Redis")
        self._transport = None
        if not self.gone.done():
            self.gone.set_result(None)


def _note(errors: list[str], text: str) -> Exception:
    """Make the exception that hiredis puts into a reply, maybe deep inside, and note its text."""
    errors.append(text)
    return hiredis.ReplyError(text)


async def _connect(host: Host, place: Place, make: Callable[[], L]) -> L:
    """Open a connection, without its handshake."""
    loop = asyncio.get_running_loop()
    if host.path is not None:
        return (await loop.create_unix_connection(make, host.path))[1]
    transport, link = await loop.create_connection(make, *place, ssl=host.tls_context)
    connection: socket.socket = transport.get_extra_info("socket")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # not all systems have all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return link
