"""PubSub: one publish/subscribe connection that comes back after it was lost.

States, and the fields that make them up:

    UNUSED      no connection, no restorer; the beginning
    CONNECTING  the restorer opens the first connection; callers of `subscribe` wait
    UP          connected, every wanted name is subscribed to; no restorer
    RESTORING   the connection was lost, the restorer opens another one
    CLOSED      for good; every call fails

Events:

    UNUSED ──── subscribe ────────────────────────────────► CONNECTING
    CONNECTING ─ Redis confirmed every wanted name ───────► UP
    CONNECTING ─ no name is wanted any more ──────────────► UNUSED
    CONNECTING ─ lost after some caller got its name ─────► RESTORING   on_lost
    UP ───────── lost ────────────────────────────────────► RESTORING   on_lost
    RESTORING ── Redis confirmed every wanted name ───────► UP          on_restored
    any ──────── close ───────────────────────────────────► CLOSED

While connecting or restoring, an attempt that fails, or a link that is lost before Redis has
confirmed everything, is followed by another attempt. `subscribe` and `unsubscribe` are allowed in
every state: they change what is wanted, and send a command if there is a link.

Invariants:

- There is at most one link and one restorer; the restorer runs in CONNECTING and RESTORING only.
- Commands leave in the order in which calls began. A new link begins with all wanted names, in the
  same turn of the loop in which it is installed.
- A caller of `subscribe` that returned can rely on its name, except between `on_lost` and
  `on_restored`. These two alternate, `on_lost` first. Messages published in between are lost.
- Redis answers each command with as many replies as it has names, in order. So a reply always
  belongs to the oldest command that is still owed one, and a link on which that is in doubt is lost
  as a whole.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import hiredis

from realtime.errors import EngineUnavailable
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import INTERRUPTED, Link, encode

logger = logging.getLogger("realtime.redis")

PING_INTERVAL = 5.0
"""Seconds without data after which a PING is sent."""

RETRY_DELAY = 0.05
MAX_RETRY_DELAY = 2.0
"""Seconds between attempts to connect; they double."""

MAX_NAMES_PER_COMMAND = 1000

Confirmation = asyncio.Future[EngineUnavailable | None]
"""Done when Redis confirmed a name, or with the reason why it did not."""


class PubSub:
    """See the module. Belongs to the event loop on which it is first used."""

    def __init__(
        self,
        host: Host,
        timeouts: Timeouts,
        *,
        on_message: Callable[[str, bytes], None],
        on_lost: Callable[[], None],
        on_restored: Callable[[], None],
    ) -> None:
        """
        Args:
            host: the Redis.
            timeouts: `answer` also bounds how long `subscribe` waits for a lost connection.
            on_message: called with the name of the Redis channel and the published bytes, in
                order; with everything that arrived together in one turn of the loop.
            on_lost: messages may be missed from now on.
            on_restored: every wanted name is subscribed to again.
        """
        self._host = host
        self._timeouts = timeouts
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_restored = on_restored
        self._wanted: dict[str, Confirmation] = {}
        """Redis channel → the confirmation of its latest SUBSCRIBE."""
        self._confirmed: set[str] = set()
        """Wanted names for which a call of `subscribe` has returned."""
        self._link: _PubSubLink | None = None
        self._up = False
        self._was_up = False
        """Whether it was ever up, so that a loss leads to RESTORING and not to CONNECTING."""
        self._restorer: asyncio.Task[None] | None = None
        self._failure = "not connected yet"
        """Why there is no connection; each reason is logged once."""
        self._closed = False

    async def subscribe(self, name: str) -> None:
        """Deliver what is published under a name; return when Redis confirmed that.

        Calls of this and of `unsubscribe` take effect in the order in which they begin. When the
        caller is cancelled, the name stays wanted.

        Raises:
            EngineUnavailable: Redis did not confirm it in time. The name is not wanted any more,
                unless another call for it succeeded.
        """
        if self._closed:
            raise self._host.unavailable("closed here")
        if self._up and name in self._confirmed:
            return
        confirmation = self._wanted.get(name)
        if confirmation is None or confirmation.done():
            confirmation = asyncio.get_running_loop().create_future()
            self._wanted[name] = confirmation
            if self._link is not None:
                self._link.subscribe([name], [confirmation])
            else:
                self._restore()
        await asyncio.wait([confirmation], timeout=self._timeouts.answer)
        if not confirmation.done():
            reason = f"not subscribed within {self._timeouts.answer:g} s"
            if not self._up:
                reason += f" ({self._failure})"
            confirmation.set_result(self._host.unavailable(reason))
        error = confirmation.result()
        if error is not None:
            if self._wanted.get(name) is confirmation and name not in self._confirmed:
                self._drop(name)
            raise EngineUnavailable(str(error))
        if name in self._wanted:
            self._confirmed.add(name)

    def unsubscribe(self, name: str) -> None:
        """Deliver nothing more of a name. Does not wait for Redis, and cannot fail."""
        if name in self._wanted:
            self._drop(name)

    async def close(self) -> None:
        """Deliver nothing more and close; bounded in time. Waiting callers of `subscribe` fail."""
        self._closed = True
        restorer, link = self._restorer, self._link
        self._restorer = self._link = None
        wanted, self._wanted = self._wanted, {}
        self._confirmed.clear()
        for confirmation in wanted.values():
            if not confirmation.done():
                confirmation.set_result(self._host.unavailable("closed here"))
        if restorer is not None:
            restorer.cancel()
            await asyncio.wait([restorer])
        if link is not None:
            await link.close("closed here")

    def _drop(self, name: str) -> None:
        confirmation = self._wanted.pop(name)
        self._confirmed.discard(name)
        if not confirmation.done():
            confirmation.set_result(None)  # the caller that unsubscribed does not need the name
        if self._link is not None:
            self._link.unsubscribe(name)

    # connecting

    def _restore(self) -> None:
        if self._restorer is None:
            self._restorer = asyncio.create_task(self._restore_until_up())

    async def _restore_until_up(self) -> None:
        """Connect until every wanted name is subscribed to; the first time only while one is."""
        delay = RETRY_DELAY
        while not self._closed and (self._was_up or self._wanted):
            error = await self._attempt()
            if error is None:
                break
            if str(error) != self._failure:
                self._failure = str(error)
                logger.warning("Redis pub/sub is not connected: %s", error)
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, MAX_RETRY_DELAY)
        self._restorer = None

    async def _attempt(self) -> EngineUnavailable | None:
        """Connect and subscribe to every wanted name; return the reason of a failure."""
        try:
            link = await _PubSubLink.open(self._host, self._timeouts)
        except EngineUnavailable as error:
            return error
        if link.lost is None:
            link.start(self._receive, self._lost)
            self._link = link
            # everything up to here happens in one turn, so no name is forgotten or sent twice
            for refusal in await asyncio.gather(*link.subscribe_all(self._wanted)):
                if refusal is not None:
                    link.abort(str(refusal))
        if link.lost is not None:
            return self._host.unavailable(link.lost)
        self._up = True
        self._failure = "lost"
        if self._was_up:
            logger.warning("Redis pub/sub is connected again: %s", self._host.label)
            self._call(self._on_restored)
        self._was_up = True
        return None

    def _lost(self, link: _PubSubLink) -> None:
        if link is not self._link:
            return
        self._link = None
        returned = any(confirmation.done() for confirmation in self._wanted.values())
        if self._up or (returned and not self._was_up):
            self._up = False
            self._was_up = True
            self._failure = str(link.lost)
            logger.warning("Redis pub/sub was lost: %s: %s", self._host.label, link.lost)
            self._call(self._on_lost)
            self._restore()

    # delivering

    def _receive(self, name: str, data: bytes) -> None:
        if name not in self._wanted:
            return
        try:
            self._on_message(name, data)
        except Exception:  # an invalid message must not stop the others
            logger.exception("A message from Redis could not be handled")

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception:
            logger.exception("A change of the connection to Redis could not be handled")


class _Expected:
    """A command whose replies Redis owes: one for each Redis channel that it named."""

    __slots__ = ("confirmations", "done", "replies")

    def __init__(
        self, replies: int, confirmations: Sequence[Confirmation], done: Confirmation | None
    ) -> None:
        self.replies = replies
        """Number of replies that are still to come."""
        self.confirmations = confirmations
        """Outlive the link: a name that was not confirmed is subscribed to on the next one."""
        self.done = done
        """Fails with the link."""

    def settle(self, error: EngineUnavailable | None) -> None:
        """Tell callers that every reply has arrived, or that Redis refused the command."""
        for future in self.confirmations:
            if not future.done():
                future.set_result(error)
        self.fail(error)

    def fail(self, error: EngineUnavailable | None) -> None:
        """Tell the restorer how the command ended."""
        if self.done is not None and not self.done.done():
            self.done.set_result(error)


class _PubSubLink(Link):
    """A link that `start` turns over to publish/subscribe."""

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        super().__init__(host, timeouts)
        self._receive: Callable[[str, bytes], None] | None = None
        self._on_lost: Callable[[_PubSubLink], None] | None = None
        self._expected: deque[_Expected] = deque()
        self._last_data_at = 0.0
        self._pinged_at: float | None = None
        self._watch: asyncio.TimerHandle | None = None

    def start(
        self, receive: Callable[[str, bytes], None], on_lost: Callable[[_PubSubLink], None]
    ) -> None:
        """Deliver messages from now on; `send` must not be used any more."""
        self._receive = receive
        self._on_lost = on_lost
        self._last_data_at = self._loop.time()
        self._watch = self._loop.call_later(PING_INTERVAL, self._check_alive)

    def subscribe(
        self,
        names: Sequence[str],
        confirmations: Sequence[Confirmation],
        done: Confirmation | None = None,
    ) -> None:
        """Subscribe to names with one command."""
        self._command(("SUBSCRIBE", *names), _Expected(len(names), confirmations, done))

    def subscribe_all(self, wanted: Mapping[str, Confirmation]) -> list[Confirmation]:
        """Subscribe to names; return one confirmation for each command."""
        names = list(wanted)
        commands = []
        for start in range(0, len(names), MAX_NAMES_PER_COMMAND):
            chunk = names[start : start + MAX_NAMES_PER_COMMAND]
            done: Confirmation = self._loop.create_future()
            self.subscribe(chunk, [wanted[name] for name in chunk], done)
            commands.append(done)
        return commands

    def unsubscribe(self, name: str) -> None:
        """Unsubscribe from a name."""
        self._command(("UNSUBSCRIBE", name), _Expected(1, (), None))

    def _command(self, command: tuple[str, ...], expected: _Expected) -> None:
        try:
            self._write(encode(command))
            self._expected.append(expected)
        except BaseException:
            self.abort(INTERRUPTED)
            raise

    def _check_alive(self) -> None:
        now = self._loop.time()
        if self._pinged_at is not None and self._last_data_at < self._pinged_at:
            self.abort(f"no sign of life within {self._answer_timeout:g} s")
            return
        self._pinged_at = None
        delay = self._last_data_at + PING_INTERVAL - now
        if delay <= 0:
            self._command(("PING",), _Expected(1, (), None))
            self._pinged_at = now
            delay = self._answer_timeout
        self._watch = self._loop.call_later(delay, self._check_alive)

    def abort(self, reason: str) -> None:
        if self.lost is not None:
            return
        super().abort(reason)
        if self._watch is not None:
            self._watch.cancel()
        while self._expected:
            self._expected.popleft().fail(self._host.unavailable(reason))
        on_lost, self._on_lost, self._receive = self._on_lost, None, None
        if on_lost is not None:
            on_lost(self)

    def data_received(self, data: bytes) -> None:
        receive = self._receive
        if receive is None:
            super().data_received(data)
            return
        self._last_data_at = self._loop.time()
        errors, gets = self._errors, self._reader.gets
        try:
            self._reader.feed(data)
            while (reply := gets()) is not False:
                if type(reply) is list and reply[0] == b"message":
                    receive(reply[1].decode(), reply[2])
                else:
                    self._on_reply(errors.pop() if errors else None)
        except (hiredis.HiredisError, IndexError) as error:
            self.abort(f"not a reply of Redis: {error}")
        except BaseException:
            self.abort(INTERRUPTED)
            raise

    def _on_reply(self, error: str | None) -> None:
        """Count a reply to the oldest command; an error is the only reply to its command."""
        expected = self._expected[0]
        expected.replies -= 1
        if error is not None:
            self._expected.popleft()
            expected.settle(self._host.unavailable(error))
        elif not expected.replies:
            self._expected.popleft()
            expected.settle(None)
