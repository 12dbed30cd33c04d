"""PubSub: one publish/subscribe connection that comes back when it was lost.

              first subscribe                    lost: on_lost
    unused ─────────────────► connecting ─► up ───────────────► restoring ─┐
       ▲   nobody wants it any more │        ▲   restored: on_restored     │
       └────────────────────────────┘        └─────────────────────────────┘

What is wanted is kept here, so a new connection begins by subscribing to all of it. Messages
that were published in between are lost: between `on_lost` and `on_restored` nothing may be
relied on. One task, the restorer, runs while connecting or restoring, and none otherwise.
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
"""Seconds of silence after which Redis is asked whether it is there."""

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
"""Seconds between attempts to connect; they double."""

NAMES_PER_COMMAND = 1000

Confirmation = asyncio.Future[EngineUnavailable | None]
"""Done when Redis confirmed a name, or with the reason why it did not."""


class PubSub:
    """See the module. Belongs to the event loop it is first used on."""

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
            on_message: is handed the Redis channel's name and what was published, in order,
                everything that arrived together in one turn of the loop.
            on_lost: messages may be missed from now on.
            on_restored: everything wanted is subscribed to again.
        """
        self._host = host
        self._timeouts = timeouts
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_restored = on_restored
        self._wanted: dict[str, Confirmation] = {}
        """Redis channel → the confirmation of its latest SUBSCRIBE."""
        self._relied_on: set[str] = set()
        """Those of which a caller was told that they are subscribed to."""
        self._feed: _Feed | None = None
        self._up = False
        self._was_up = False
        self._restorer: asyncio.Task[None] | None = None
        self._failure = "not connected yet"
        self._closed = False

    async def subscribe(self, name: str) -> None:
        """Begin to hand over what is published under a name; returns when Redis confirmed.

        Calls of this and of `unsubscribe` take effect in the order in which they begin. A
        cancelled caller leaves the name wanted.

        Raises:
            EngineUnavailable: there was no confirmation in time. The name is not wanted any
                more, unless another call for it succeeded.
        """
        if self._closed:
            raise self._host.unavailable("closed here")
        if self._up and name in self._relied_on:
            return
        confirmation = self._wanted.get(name)
        if confirmation is None or confirmation.done():
            confirmation = asyncio.get_running_loop().create_future()
            self._wanted[name] = confirmation
            if self._feed is not None:
                self._feed.subscribe([name], [confirmation])
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
            if self._wanted.get(name) is confirmation and name not in self._relied_on:
                self._drop(name)
            raise EngineUnavailable(str(error))
        if name in self._wanted:
            self._relied_on.add(name)

    def unsubscribe(self, name: str) -> None:
        """Hand over no more of a name, from now on. Does not wait for Redis, and cannot fail."""
        if name in self._wanted:
            self._drop(name)

    async def close(self) -> None:
        """Hand over nothing more and close; bounded in time. Waiting `subscribe` calls fail."""
        self._closed = True
        restorer, feed = self._restorer, self._feed
        self._restorer = self._feed = None
        wanted, self._wanted = self._wanted, {}
        self._relied_on.clear()
        for confirmation in wanted.values():
            if not confirmation.done():
                confirmation.set_result(self._host.unavailable("closed here"))
        if restorer is not None:
            restorer.cancel()
            await asyncio.wait([restorer])
        if feed is not None:
            await feed.close("closed here")

    def _drop(self, name: str) -> None:
        confirmation = self._wanted.pop(name)
        self._relied_on.discard(name)
        if not confirmation.done():
            confirmation.set_result(None)  # whoever unsubscribes does not care any more
        if self._feed is not None:
            self._feed.unsubscribe(name)

    # connecting

    def _restore(self) -> None:
        if self._restorer is None:
            self._restorer = asyncio.create_task(self._keep_trying())

    async def _keep_trying(self) -> None:
        """Until everything wanted is subscribed to; or until nothing is, the first time."""
        pause = FIRST_PAUSE
        while not self._closed and (self._was_up or self._wanted):
            error = await self._try()
            if error is None:
                break
            if str(error) != self._failure:
                self._failure = str(error)
                logger.warning("Redis pub/sub is not connected: %s", error)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)
        self._restorer = None

    async def _try(self) -> EngineUnavailable | None:
        """Connect and subscribe to everything wanted; what went wrong, if something did."""
        try:
            feed = await _Feed.open(self._host, self._timeouts)
        except EngineUnavailable as error:
            return error
        if feed.lost is None:
            feed.start(self._receive, self._lost)
            self._feed = feed
            # everything up to here happens in one turn, so no name is forgotten or sent twice
            for refusal in await asyncio.gather(*feed.subscribe_all(self._wanted)):
                if refusal is not None:
                    feed.abort(str(refusal))
        if feed.lost is not None:
            return self._host.unavailable(feed.lost)
        self._up = True
        self._failure = "lost"
        if self._was_up:
            logger.warning("Redis pub/sub is connected again: %s", self._host.label)
            self._call(self._on_restored)
        self._was_up = True
        return None

    def _lost(self, feed: _Feed) -> None:
        if feed is not self._feed:
            return
        self._feed = None
        told = any(confirmation.done() for confirmation in self._wanted.values())
        if self._up or (told and not self._was_up):  # who was told "subscribed" must hear of it
            self._up = False
            self._was_up = True
            self._failure = str(feed.lost)
            logger.warning("Redis pub/sub was lost: %s: %s", self._host.label, feed.lost)
            self._call(self._on_lost)
            self._restore()

    # handing over

    def _receive(self, name: str, data: bytes) -> None:
        if name not in self._wanted:
            return
        try:
            self._on_message(name, data)
        except Exception:  # what is wrong with one message must not reach the others
            logger.exception("A message from Redis could not be handled")

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception:
            logger.exception("A change of the connection to Redis could not be handled")


class _Expected:
    """What Redis owes for one command: as many replies as it named Redis channels."""

    __slots__ = ("confirmations", "done", "replies")

    def __init__(
        self, replies: int, confirmations: Sequence[Confirmation], done: Confirmation | None
    ) -> None:
        self.replies = replies
        self.confirmations = confirmations
        """Outlive the link: a name that was not confirmed is subscribed to on the next one."""
        self.done = done
        """Fails with the link."""

    def settle(self, error: EngineUnavailable | None) -> None:
        for future in self.confirmations:
            if not future.done():
                future.set_result(error)
        self.fail(error)

    def fail(self, error: EngineUnavailable | None) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_result(error)


class _Feed(Link):
    """A link that was turned over to publish/subscribe with `start`."""

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        super().__init__(host, timeouts)
        self._receive: Callable[[str, bytes], None] | None = None
        self._on_lost: Callable[[_Feed], None] | None = None
        self._expected: deque[_Expected] = deque()
        self._heard_at = 0.0
        self._asked_at: float | None = None
        self._watch: asyncio.TimerHandle | None = None

    def start(
        self, receive: Callable[[str, bytes], None], on_lost: Callable[[_Feed], None]
    ) -> None:
        """From now on hand over messages; `send` is not for use any more."""
        self._receive = receive
        self._on_lost = on_lost
        self._heard_at = self._loop.time()
        self._watch = self._loop.call_later(PING_INTERVAL, self._look_for_life)

    def subscribe(
        self,
        names: Sequence[str],
        confirmations: Sequence[Confirmation],
        done: Confirmation | None = None,
    ) -> None:
        """Subscribe to names, with one command."""
        self._command(("SUBSCRIBE", *names), _Expected(len(names), confirmations, done))

    def subscribe_all(self, wanted: Mapping[str, Confirmation]) -> list[Confirmation]:
        """Subscribe to everything wanted; gives one confirmation for each command."""
        names = list(wanted)
        commands = []
        for start in range(0, len(names), NAMES_PER_COMMAND):
            chunk = names[start : start + NAMES_PER_COMMAND]
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

    def _look_for_life(self) -> None:
        now = self._loop.time()
        if self._asked_at is not None and self._heard_at < self._asked_at:
            self.abort(f"no sign of life within {self._answer_timeout:g} s")
            return
        self._asked_at = None
        pause = self._heard_at + PING_INTERVAL - now
        if pause <= 0:
            self._command(("PING",), _Expected(1, (), None))
            self._asked_at = now
            pause = self._answer_timeout
        self._watch = self._loop.call_later(pause, self._look_for_life)

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
        self._heard_at = self._loop.time()
        errors, gets = self._errors, self._reader.gets
        try:
            self._reader.feed(data)
            while (reply := gets()) is not False:
                if type(reply) is list and reply[0] == b"message":
                    receive(reply[1].decode(), reply[2])
                else:
                    self._confirmed(errors.pop() if errors else None)
        except (hiredis.HiredisError, IndexError) as error:
            self.abort(f"not a reply of Redis: {error}")
        except BaseException:
            self.abort(INTERRUPTED)
            raise

    def _confirmed(self, error: str | None) -> None:
        """The oldest command has a reply: an error ends it, others are counted."""
        expected = self._expected[0]
        expected.replies -= 1
        if error is not None:
            self._expected.popleft()
            expected.settle(self._host.unavailable(error))
        elif not expected.replies:
            self._expected.popleft()
            expected.settle(None)
