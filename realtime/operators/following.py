"""Mirrors: the frames of one user's connections, or publications, as all nodes see them.

    with UserFrames("17", seconds=60) as mirror:
        while not mirror.is_over:
            for copied in mirror.poll().copies:
                ...

Each `poll` asks all nodes for what they have copied since the one before, and they end the mirror
when no poll comes for ten seconds. So poll at least every few seconds; each half second is enough
for a screen. Nothing changes for the clients.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from contextlib import suppress
from typing import Any, NamedTuple, Self

import msgspec

from realtime.cluster.member import Member
from realtime.cluster.survey import SurveyResult
from realtime.errors import BadRequest, EngineUnavailable, NotServing
from realtime.hooks.site_values import user_id
from realtime.operators.questions import AskMirror, Copy, MirrorAnswer
from realtime.serving import serving

DEFAULT_SECONDS = 300.0
MAX_SECONDS = 3600.0
"""How long a mirror lasts."""
MAX_PATTERN = 300
"""Characters of a pattern of channels, more than a name may have. Each node compiles it, in its
event loop."""
MAX_REMEMBERED = 10_000
"""Positions and channels that are remembered, to show a publication once."""
REPORTER_LEASE = 5.0
"""Seconds after which another node may report a channel without history."""


class Copied(NamedTuple):
    """A copy, and the node that made it."""

    node: str
    """Its name."""
    copy: Copy


class Poll(NamedTuple):
    """What the nodes have copied since the poll before."""

    copies: list[Copied]
    """In the order of time, as the clocks of the nodes say."""
    left_out: int
    """How much was not copied, because more happened than nodes keep between two polls."""
    missing: list[str]
    """Names of the nodes that did not answer."""
    refused: list[str]
    """Names of the nodes that have as many mirrors as they may."""


class _Mirror:
    def __init__(self, question: AskMirror, seconds: float) -> None:
        self._question = question
        self._ends_at = time.monotonic() + min(max(seconds, 0.0), MAX_SECONDS)
        self._taken: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    @property
    def is_over(self) -> bool:
        """Whether its time is over: `poll` raises."""
        return time.monotonic() >= self._ends_at

    def poll(self) -> Poll:
        """Ask all nodes. Waits a second for those that do not answer.

        Raises:
            EngineUnavailable: The engine did not answer; the next call gets what this one did not.
            NotServing: with the memory engine, in a process that serves no clients.
            TimeoutError: the time of the mirror is over.
        """
        return self._result(serving.call(self._ask))

    def end(self) -> None:
        """End it at all nodes. Without this, they end it by themselves."""
        self._ends_at = 0.0
        with suppress(EngineUnavailable, NotServing):  # the nodes end it when no poll comes
            serving.call(self._ask_to_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    async def _ask(self, member: Member) -> SurveyResult[MirrorAnswer]:
        if self.is_over:
            raise TimeoutError("the time of this mirror is over")
        question = msgspec.structs.replace(self._question, taken=dict(self._taken))
        return await member.survey(question, MirrorAnswer)

    async def _ask_to_end(self, member: Member) -> None:
        question = msgspec.structs.replace(self._question, ends=True)
        await member.survey(question, MirrorAnswer)

    def _result(self, surveyed: SurveyResult[MirrorAnswer]) -> Poll:
        copies: list[Copied] = []
        left_out = 0
        for answer in surveyed.answers:
            for copy in answer.copies:
                if copy.number > self._taken.get(answer.node, 0):
                    self._taken[answer.node] = copy.number
                    if self._is_new(answer.node, copy):
                        copies.append(Copied(answer.name, copy))
            before = self._left_out.get(answer.node, 0)
            # less than before: the node began it again
            left_out += answer.left_out - (before if before <= answer.left_out else 0)
            self._left_out[answer.node] = answer.left_out
        copies.sort(key=lambda copied: copied.copy.time)
        refused = [answer.name for answer in surveyed.answers if answer.refused]
        return Poll(copies, left_out, surveyed.missing, refused)

    def _is_new(self, node: str, copy: Copy) -> bool:
        return True


class UserFrames(_Mirror):
    """The frames of all connections of one user, in both directions, without secrets.

    Connections that come later are among them, from the reply to connect on.
    """

    def __init__(
        self, user: Any, *, masked: bool = False, seconds: float = DEFAULT_SECONDS
    ) -> None:
        """
        Args:
            user: a Django user, or a user ID as a string, an integer or a UUID.
            masked: leave payloads out.
            seconds: how long it lasts, `MAX_SECONDS` at most.

        Raises:
            TypeError: it is neither a user nor an ID.
            BadRequest: anonymous clients have no user ID.
        """
        user = user_id(user)
        if not user:
            raise BadRequest
        super().__init__(AskMirror(uuid.uuid4().hex, user=user, masked=masked), seconds)


class Publications(_Mirror):
    """Publications in channels that match a pattern and have a subscriber.

    Each is shown once, although every node with a subscriber copies it. Those without a position
    are shown as one node got them, the first that reported the channel.
    """

    def __init__(
        self, channels: str, *, masked: bool = False, seconds: float = DEFAULT_SECONDS
    ) -> None:
        """
        Args:
            channels: a name, in which * is any text and ? any character.
            masked: leave data out.
            seconds: how long it lasts, `MAX_SECONDS` at most.

        Raises:
            BadRequest: the pattern is empty, or too long.
        """
        if not 0 < len(channels) <= MAX_PATTERN:
            raise BadRequest
        question = AskMirror(uuid.uuid4().hex, channels=channels, masked=masked)
        super().__init__(question, seconds)
        self._shown: OrderedDict[tuple[str, str, int], None] = OrderedDict()
        self._reporters: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """Channel → the node whose copies are shown, and the time of the last one."""

    def _is_new(self, node: str, copy: Copy) -> bool:
        if not copy.offset:
            return self._is_reporter(node, copy)
        key = copy.channel, copy.epoch, copy.offset
        is_new = key not in self._shown
        self._shown[key] = None
        if len(self._shown) > MAX_REMEMBERED:
            self._shown.popitem(last=False)
        return is_new

    def _is_reporter(self, node: str, copy: Copy) -> bool:
        now = time.monotonic()
        reporter, last = self._reporters.get(copy.channel, (node, now))
        if reporter != node and now - last < REPORTER_LEASE:
            return False
        self._reporters[copy.channel] = node, now
        self._reporters.move_to_end(copy.channel)
        if len(self._reporters) > MAX_REMEMBERED:
            self._reporters.popitem(last=False)
        return True
