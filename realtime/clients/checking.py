"""Checking: what a client tries goes through a table of checks, to be decided or explained.

    command ──► Attempt ──► Checks.decide ──► each check passes, or raises what the client gets
    operator ─► Attempt ──► Checks.explain ─► the same checks, each with its outcome

There is one table for each kind of command (`clients.checks`), and both ways go by it. So what
operators read is what clients get.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from realtime import channel_rules
from realtime.clients.session import Session
from realtime.config.options import ChannelOptions, Config
from realtime.errors import Disconnect, Error
from realtime.protocol.messages import ChannelName, UserID

_UNKNOWN = ChannelOptions()


class Attempt(Struct, gc=False):
    """A command about a channel. Checks fill in what later ones need."""

    channel: ChannelName
    session: Session
    config: Config
    token: str = ""
    """A subscription token; "" for none."""
    room: float = math.inf
    """How many more subscriptions the user may have."""
    options: ChannelOptions = _UNKNOWN
    """Those of the channel, as soon as its namespace is found."""
    by_token: bool = False
    """Whether a token, and no hook, decides about the subscription."""
    needs_rights: bool = True
    """Whether the options must let the client subscribe, also where a token decides."""

    @property
    def user(self) -> UserID:
        """The user ID of the client."""
        return self.session.user

    @property
    def lacks_token(self) -> bool:
        """Whether only a token could open the channel, and there is none."""
        return (
            self.session.rules.any_channel_takes_token
            and not self.token
            and channel_rules.is_private(self.channel, self.config)
        )

    @property
    def is_subscribed(self) -> bool:
        """Whether the client is subscribed to the channel."""
        return self.channel in self.session.subscriptions


class Outcome(StrEnum):
    """What becomes of a check."""

    PASSED = "passed"
    REFUSED = "refused"
    NOT_ASKED = "not asked"
    """An earlier check refuses."""
    NEEDLESS = "needless"
    """It is not about such a channel or client."""
    UNKNOWN = "unknown"
    """The site decides, and was not asked."""


class Step(NamedTuple):
    """A check, and what becomes of it."""

    name: str
    outcome: Outcome
    options: tuple[str, ...] = ()
    """The options that decide it: names of one right, the newer one first."""
    error: Error | Disconnect | None = None
    """What the client gets."""


class Check(NamedTuple):
    """One check."""

    name: str
    run: Callable[[Attempt], None]
    """Raises what the client gets."""
    options: tuple[str, ...] = ()
    """See `Step`."""
    applies: Callable[[Attempt], bool] | None = None
    """Whether it is about such an attempt at all, once it has passed; None: always."""


class Checks:
    """The checks of one kind of command, in their order."""

    def __init__(self, *checks: Check) -> None:
        self.all = checks
        self._runs = tuple(check.run for check in checks)

    def decide(self, attempt: Attempt) -> None:
        """Check an attempt.

        Raises:
            Error, Disconnect: it is refused.
        """
        for run in self._runs:
            run(attempt)

    def explain(self, attempt: Attempt) -> list[Step]:
        """Return every check with what becomes of it."""
        steps: list[Step] = []
        refused = False
        for name, run, options, applies in self.all:
            if refused:
                steps.append(Step(name, Outcome.NOT_ASKED, options))
                continue
            try:
                run(attempt)
            except (Error, Disconnect) as error:
                refused = True
                steps.append(Step(name, Outcome.REFUSED, options, error.with_traceback(None)))
            else:
                about = applies is None or applies(attempt)
                steps.append(Step(name, Outcome.PASSED if about else Outcome.NEEDLESS, options))
        return steps
