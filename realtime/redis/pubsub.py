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
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable

from realtime.errors import EngineUnavailable
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.master import Master
from realtime.redis.pubsub_link import Confirmation, PubSubLink
from realtime.redis.sharded_link import SlotPart

logger = logging.getLogger("realtime.redis")

RETRY_DELAY = 0.05
MAX_RETRY_DELAY = 2.0
"""Seconds between attempts to connect; they double."""

SubscribedLink = PubSubLink | SlotPart


class _Wanted:
    """A name that is wanted, from `subscribe` to `unsubscribe`."""

    __slots__ = ("confirmation", "confirmed", "waiting")

    def __init__(self, confirmation: Confirmation) -> None:
        self.confirmation = confirmation
        """Of the latest SUBSCRIBE."""
        self.confirmed = False
        """Whether a call of `subscribe` has returned."""
        self.waiting = 0
        """Calls of `subscribe` that wait."""


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
        master: Master | None = None,
    ) -> None:
        """
        Args:
            host: the Redis.
            timeouts: `answer` also bounds how long `subscribe` waits for a lost connection.
            on_message: called with the name of the Redis channel and the published bytes, in
                order; with everything that arrived together in one turn of the loop.
            on_lost: messages may be missed from now on.
            on_restored: every wanted name is subscribed to again.
            master: shared with others; None: of this one alone.
        """
        self._host = host
        self._master = master or Master(host, timeouts)
        self._timeouts = timeouts
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_restored = on_restored
        self._wanted: dict[str, _Wanted] = {}
        """By Redis channel."""
        self._link: SubscribedLink | None = None
        self._up = False
        self._was_up = False
        """Whether it was ever up, so that a loss leads to RESTORING and not to CONNECTING."""
        self._restorer: asyncio.Task[None] | None = None
        self._failure = "not connected yet"
        """Why there is no connection; each reason is logged once."""
        self._lost_at = 0.0
        """Seconds of `time.monotonic`."""
        self._closed = False

    async def subscribe(self, name: str) -> None:
        """Deliver what is published under a name; return when Redis confirmed that.

        Calls of this and of `unsubscribe` take effect in the order in which they begin. When the
        caller is cancelled, the name stays wanted.

        Raises:
            EngineUnavailable: Redis did not confirm it in time. The name is not wanted any more,
                unless another call for it succeeded or still waits.
        """
        if self._closed:
            raise self._host.unavailable("closed here")
        wanted = self._wanted.get(name)
        if wanted is not None and wanted.confirmed and self._up:
            return
        if wanted is None or wanted.confirmation.done():
            wanted = self._want(name, wanted)
        confirmation = wanted.confirmation
        wanted.waiting += 1
        try:
            await asyncio.wait([confirmation], timeout=self._timeouts.answer)
        finally:
            wanted.waiting -= 1
        error = confirmation.result() if confirmation.done() else self._late()
        if error is not None:
            if self._wanted.get(name) is wanted and not (wanted.confirmed or wanted.waiting):
                self._drop(name)
            raise EngineUnavailable(str(error))
        wanted.confirmed = True

    def _want(self, name: str, wanted: _Wanted | None) -> _Wanted:
        """Ask Redis for a name, or ask again for one that is `wanted` already."""
        confirmation: Confirmation = asyncio.get_running_loop().create_future()
        if wanted is None:
            wanted = self._wanted[name] = _Wanted(confirmation)
        else:
            wanted.confirmation = confirmation
        if self._link is not None:
            self._link.subscribe([name], [confirmation])
        else:
            self._restore()
        return wanted

    def _late(self) -> EngineUnavailable:
        reason = f"not subscribed within {self._timeouts.answer:g} s"
        if not self._up:
            reason += f" ({self._failure})"
        return self._host.unavailable(reason)

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
        for each in wanted.values():
            if not each.confirmation.done():
                each.confirmation.set_result(self._host.unavailable("closed here"))
        if restorer is not None:
            restorer.cancel()
            await asyncio.wait([restorer])
        if link is not None:
            await link.close("closed here")

    def _drop(self, name: str) -> None:
        confirmation = self._wanted.pop(name).confirmation
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
            try:
                error = await self._attempt()
            except Exception as defect:  # without another attempt this process would stay deaf
                error = self._host.unavailable(f"unexpected error: {defect!r}")
                self._log_failure(error, exc_info=True)
                if self._link is not None:
                    self._link.abort(str(error))
            if error is None:
                break
            self._log_failure(error)
            await self._pause(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, MAX_RETRY_DELAY)
        self._restorer = None

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt."""
        await asyncio.sleep(seconds)

    def _log_failure(self, error: EngineUnavailable, *, exc_info: bool = False) -> None:
        """Log why there is no connection, unless that is logged already."""
        if str(error) != self._failure:
            self._failure = str(error)
            if self._was_up and not exc_info:  # the loss is in the log already
                logger.debug("Redis pub/sub is not connected: %s", error)
            else:
                logger.warning("Redis pub/sub is not connected: %s", error, exc_info=exc_info)

    async def _open_link(self) -> SubscribedLink:
        return await self._master.open(PubSubLink)

    async def _attempt(self) -> EngineUnavailable | None:
        """Connect and subscribe to every wanted name; return the reason of a failure."""
        try:
            link = await self._open_link()
        except EngineUnavailable as error:
            return error
        if link.lost is None:
            link.start(self._receive, self._lost)
            self._link = link
            confirmations = {name: wanted.confirmation for name, wanted in self._wanted.items()}
            # everything up to here happens in one turn, so no name is forgotten or sent twice
            for refusal in await asyncio.gather(*link.subscribe_all(confirmations)):
                if refusal is not None:
                    link.abort(str(refusal))
        if link.lost is not None:
            return self._host.unavailable(link.lost)
        self._up = True
        self._failure = "lost"
        if self._was_up:
            self._log_restored()
            report(self._on_restored)
        self._was_up = True
        return None

    def _lost(self, link: SubscribedLink) -> None:
        if link is not self._link:
            return
        self._link = None
        returned = any(wanted.confirmation.done() for wanted in self._wanted.values())
        if self._up or (returned and not self._was_up):
            self._up = False
            self._was_up = True
            self._failure = str(link.lost)
            self._lost_at = time.monotonic()
            self._log_lost(self._failure)
            report(self._on_lost)
            self._restore()

    def _log_lost(self, reason: str) -> None:
        log_lost(self._host.label, reason)

    def _log_restored(self) -> None:
        log_restored(self._host.label, self._lost_at)

    # delivering

    def _receive(self, name: str, data: bytes) -> None:
        if name not in self._wanted:
            return
        try:
            self._on_message(name, data)
        except Exception:  # an invalid message must not stop the others
            logger.exception("A message from Redis could not be handled")


def log_lost(where: str, reason: str) -> None:
    """Log that messages do not come any more."""
    logger.warning(
        "Redis pub/sub was lost: %s: %s; publications wait until it is back, and what needs Redis"
        " may fail",
        where,
        reason,
    )


def log_restored(where: str, lost_at: float) -> None:
    """Log that messages come again. `lost_at`: monotonic time at which they did not any more."""
    away = time.monotonic() - lost_at
    logger.warning("Redis pub/sub is connected again: %s, after %.1f s", where, away)


def report(change: Callable[[], None]) -> None:
    """Call a function about a change. Its failure must not end what reports the next one."""
    try:
        change()
    except Exception:
        logger.exception("A change of the connection to Redis could not be handled")
