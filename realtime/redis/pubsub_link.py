"""PubSubLink: a link that is turned over to publish/subscribe.

Redis answers each command with as many replies as it has names, in order, and sends messages in
between. So a reply always belongs to the oldest command that is still owed one, and a link on which
that is in doubt is lost as a whole.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import hiredis

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Reply
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import INTERRUPTED, Link, encode

PING_INTERVAL = 5.0
"""Seconds without data after which a PING is sent."""

MAX_NAMES_PER_COMMAND = 1000

Confirmation = asyncio.Future[EngineUnavailable | None]
"""Done when Redis confirmed a name, or with the reason why it did not."""


@dataclass(slots=True)
class OwedReplies:
    """A command whose replies Redis owes: one for each Redis channel that it named."""

    replies: int
    """Number of replies that are still to come."""
    confirmations: Sequence[Confirmation] = ()
    """Outlive the link: a name that was not confirmed is subscribed to on the next one."""
    done: Confirmation | None = None
    """Fails with the link."""
    names: Sequence[str] = ()
    """Redis channels to subscribe to; empty for other commands."""
    unsubscribed: str = ""
    """The one to unsubscribe from; empty for other commands."""

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


class PubSubLink(Link):
    """A link that `start` turns over to publish/subscribe."""

    SUBSCRIBE: ClassVar = "SUBSCRIBE"
    UNSUBSCRIBE: ClassVar = "UNSUBSCRIBE"
    MESSAGE: ClassVar = b"message"
    """What Redis calls a message."""

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        super().__init__(host, timeouts)
        self._receive: Callable[[str, bytes], None] | None = None
        self._on_lost: Callable[[PubSubLink], None] | None = None
        self._expected: deque[OwedReplies] = deque()
        self._last_data_at = 0.0
        self._pinged_at: float | None = None
        self._watch: asyncio.TimerHandle | None = None

    def start(
        self, receive: Callable[[str, bytes], None], on_lost: Callable[[PubSubLink], None]
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
        self._command((self.SUBSCRIBE, *names), OwedReplies(len(names), confirmations, done, names))

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
        self._command((self.UNSUBSCRIBE, name), OwedReplies(1, unsubscribed=name))

    def _command(self, command: tuple[str, ...], expected: OwedReplies) -> None:
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
            self._command(("PING",), OwedReplies(1))
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
        errors, gets, message = self._errors, self._reader.gets, self.MESSAGE
        try:
            self._reader.feed(data)
            while (reply := gets()) is not False:
                if type(reply) is list and reply[0] == message:
                    receive(reply[1].decode(), reply[2])
                else:
                    self._on_reply(reply, errors.pop() if errors else None)
        except (hiredis.HiredisError, IndexError) as error:
            self.abort(f"not a reply of Redis: {error}")
        except BaseException:
            self.abort(INTERRUPTED)
            raise

    def _on_reply(self, reply: Reply, error: str | None) -> None:
        """Count a reply to the oldest command; an error is the only reply to its command."""
        expected = self._expected[0]
        expected.replies -= 1
        if error is not None:
            self._expected.popleft()
            expected.settle(self._host.unavailable(error))
        elif not expected.replies:
            self._expected.popleft()
            expected.settle(None)
