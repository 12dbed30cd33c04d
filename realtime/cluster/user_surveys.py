"""Surveys about users: who is connected, and what became of those who are not.

They are part of `survey`, and travel as all of those do.
"""

from __future__ import annotations

import uuid

from msgspec import Struct, field

from realtime.engine.nodes import SurveyID
from realtime.protocol.messages import ChannelName, UserID

MAX_USERS = 100
"""Users that a node names."""


def new_id() -> SurveyID:
    """Return the ID of a new survey."""
    return uuid.uuid4().hex


class AskRecent(Struct, frozen=True, tag="recent", tag_field="ask", gc=False):
    """Ask each node how the connections of a user ended, and what was refused to the user."""

    user: UserID
    origin: str = ""
    survey: SurveyID = field(default_factory=new_id)


class AskUsers(Struct, frozen=True, tag="users", tag_field="ask", gc=False):
    """Ask each node which users are connected whose ID begins so."""

    prefix: str
    limit: int
    """Users that it names, `MAX_USERS` at most."""
    origin: str = ""
    survey: SurveyID = field(default_factory=new_id)


class Refusal(Struct, frozen=True, array_like=True):
    """A command that was refused."""

    time: float
    """Unix seconds, by the clock of the node."""
    command: str
    """Its method."""
    channel: ChannelName
    """"" if that is not known."""
    code: int
    message: str


class RecentAnswer(Struct, frozen=True, tag="recent", tag_field="answer"):
    """What one node remembers of a user."""

    node: str
    name: str
    ended_at: float
    """When the last connection ended, Unix seconds; 0 if the node knows of none."""
    code: int
    """What the client got; 0 if it went."""
    reason: str
    refusals: list[Refusal]
    """Oldest first."""


class UsersAnswer(Struct, frozen=True, tag="users", tag_field="answer"):
    """The users who are connected to one node and match."""

    node: str
    name: str
    users: dict[UserID, int]
    """The first of them → connections here."""
    total: int
    """How many match."""
