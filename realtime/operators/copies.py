"""Mirrors: copies of frames or publications that a node keeps for an operator who asks for them.

    NONE ──first question──► OPEN ──"ends", or not asked for `LEASE`──► NONE

A mirror copies the frames of one user's connections, in both directions, or the publications in
channels that match a pattern. Each question takes what was copied since the one before.

Invariants:

- A connection has a tap while some mirror follows its user, and none otherwise.
- A mirror holds `MAX_COPIES` and `MAX_CHARACTERS` at most; what comes when it is full is counted.
- Copies have no secrets in them when they are made.
- Nothing of a mirror reaches the client: what fails here is logged.
"""

from __future__ import annotations

import fnmatch
import logging
import re
import time
from collections import deque
from collections.abc import Callable

from realtime.node.hub import Hub
from realtime.node.subscriber import Subscriber
from realtime.operators.questions import AskMirror, Copy, CopyKind
from realtime.operators.readable import readable, readable_data
from realtime.operators.taps import Taps
from realtime.protocol.messages import ChannelName, Publication, StreamPosition, UserID
from realtime.timers import Timers

logger = logging.getLogger("realtime.node")

LEASE = 10.0
"""Seconds without a question after which a mirror ends."""
MAX_MIRRORS = 8
"""Mirrors of one node."""
MAX_COPIES = 200
MAX_CHARACTERS = 128 * 1024
"""What a mirror holds until it is taken."""


class Mirror:
    """What one operator follows at this node."""

    def __init__(self, question: AskMirror, first: int, matches: Callable[[str], object]) -> None:
        """
        Args:
            question: the first one.
            first: the number of its first copy.
            matches: returns whether the pattern of the question matches a channel.
        """
        self.user = question.user
        self.left_out = 0
        self.deadline = 0.0
        """Monotonic seconds."""
        self._masked = question.masked
        self._matches = matches
        self._next = first
        self._copies: deque[Copy] = deque()
        self._characters = 0

    def take(self, number: int) -> list[Copy]:
        """Drop the copies up to a number, which have arrived; return the others."""
        while self._copies and self._copies[0].number <= number:
            self._characters -= len(self._copies.popleft().text)
        return list(self._copies)

    @property
    def _is_full(self) -> bool:
        return len(self._copies) >= MAX_COPIES or self._characters >= MAX_CHARACTERS

    def add(
        self,
        kind: CopyKind,
        text: Callable[[bool], str],
        *,
        client: str = "",
        channel: ChannelName = "",
        position: StreamPosition | None = None,
        key: str = "",
        removed: bool = False,
    ) -> None:
        """Add a copy, or count that it was left out. `text`: makes it; True: without payloads."""
        if self._is_full:
            self.left_out += 1
            return
        made = text(self._masked)
        offset, epoch = (0, "") if position is None else (position.offset, position.epoch)
        self._copies.append(
            Copy(self._next, time.time(), kind, client, channel, made, offset, epoch, key, removed)
        )
        self._next += 1
        self._characters += len(made)

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        """Copy a publication, if the pattern matches its channel."""
        if self._matches(channel):
            data = publication.data.raw
            self.add(
                "published",
                lambda masked: readable_data(data, masked=masked),
                client="" if publication.info is None else publication.info.client,
                channel=channel,
                position=position,
                key=publication.key,
                removed=publication.removed,
            )


class _Tap:
    """Gives the frames of one client to the mirrors of its user."""

    __slots__ = ("_client", "_mirrors")

    def __init__(self, client: Subscriber, mirrors: list[Mirror]) -> None:
        self._client = client
        self._mirrors = mirrors

    def received(self, frame: bytes) -> None:
        codec = self._client.codec
        self.add("received", lambda masked: readable(codec, frame, from_client=True, masked=masked))

    def sent(self, frame: bytes) -> None:
        codec = self._client.codec
        self.add("sent", lambda masked: readable(codec, frame, from_client=False, masked=masked))

    def closed(self, code: int, reason: str) -> None:
        self.add("closed", lambda _: f"{code}: {reason}" if code else "")

    def add(self, kind: CopyKind, text: Callable[[bool], str]) -> None:
        for mirror in self._mirrors:
            try:
                mirror.add(kind, text, client=self._client.id)
            except Exception:
                logger.exception("Could not copy a frame of client %s", self._client.id)


class Mirrors:
    """The mirrors of one node."""

    def __init__(self, hub: Hub, taps: Taps, timers: Timers) -> None:
        self._hub = hub
        self._taps = taps
        self._timers = timers
        self._timer = timers.timer(self._expire)
        self._mirrors: dict[str, Mirror] = {}
        self._users: dict[UserID, list[Mirror]] = {}

    def answer(self, question: AskMirror, taken: int) -> tuple[list[Copy], int, bool]:
        """Begin a mirror, go on with it, or end it.

        Args:
            question: about the mirror.
            taken: the number of the last copy that arrived.

        Returns:
            The copies, how much was left out, and whether there may be no more mirrors.
        """
        if question.ends:
            self._end(question.mirror)
            return [], 0, False
        mirror = self._mirrors.get(question.mirror)
        if mirror is None:
            if len(self._mirrors) >= MAX_MIRRORS:
                return [], 0, True
            mirror = self._begin(question)
        mirror.deadline = self._timers.now() + LEASE
        if self._timer.deadline is None:
            self._timer.set(mirror.deadline)
        return mirror.take(taken), mirror.left_out, False

    def opened(self, client: Subscriber) -> None:
        """Copy the frames of a client that has connected, if its user is followed."""
        if client.user in self._users:
            self._tap(client, self._users[client.user], "opened")

    def _begin(self, question: AskMirror) -> Mirror:
        # a mirror that begins again goes on with higher numbers
        first = int(self._timers.now() * 1_000_000) + 1
        mirror = Mirror(question, first, matching(question.channels))
        self._mirrors[question.mirror] = mirror
        if question.channels:
            self._taps.add(mirror.on_publication)
        if question.user:
            followers = self._users.setdefault(question.user, [])
            followers.append(mirror)
            for client in self._hub.connections(question.user):
                self._tap(client, followers, "there", mirror)
        return mirror

    def _tap(
        self,
        client: Subscriber,
        followers: list[Mirror],
        kind: CopyKind,
        only: Mirror | None = None,
    ) -> None:
        client.mirror(_Tap(client, followers))
        note = _Tap(client, followers if only is None else [only])
        note.add(kind, lambda _: client.transport.name)

    def _end(self, name: str) -> None:
        mirror = self._mirrors.pop(name, None)
        if mirror is None:
            return
        self._taps.remove(mirror.on_publication)
        followers = self._users.get(mirror.user, [])
        if mirror in followers:
            followers.remove(mirror)
            if not followers:
                del self._users[mirror.user]
                for client in self._hub.connections(mirror.user):
                    client.mirror(None)

    def _expire(self) -> None:
        now = self._timers.now()
        for name, mirror in list(self._mirrors.items()):
            if mirror.deadline <= now:
                self._end(name)
        if self._mirrors:
            self._timer.set(min(mirror.deadline for mirror in self._mirrors.values()))


def matching(pattern: str) -> Callable[[str], object]:
    """Return what tells whether a pattern matches a name: * is any text, ? any character."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match
