"""The actions of operators in the admin's log: who did what, and to which channel or user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from .models import Channel, Connection, Publication

DETAIL_MAX_LENGTH = 500
"""Characters of published data in an entry."""

_SEPARATOR = ": "


class Kind(NamedTuple):
    """A kind of action: the model of its target, its flag in the log, and its text."""

    model: type[models.Model]
    flag: int
    words: str | Promise


PUBLISH = Kind(Publication, ADDITION, _("Published"))
"""Target: channel. Detail: the data."""

DISCONNECT = Kind(Connection, DELETION, _("Disconnected"))
"""Target: user ID. Detail: the client ID, "" for all connections."""

BLOCK = Kind(Connection, DELETION, _("Blocked"))
"""Target: user ID. Detail: for how long."""

UNBLOCK = Kind(Connection, ADDITION, _("Unblocked"))
"""Target: user ID."""

TRACE = Kind(Connection, CHANGE, _("Frames followed"))
"""Target: user ID. Detail: for how long, and whether without payloads."""

UNSUBSCRIBE = Kind(Connection, DELETION, _("Unsubscribed"))
"""Target: user ID. Detail: the channel, "" for all channels."""

REMOVE_HISTORY = Kind(Channel, DELETION, _("History removed"))
"""Target: channel."""

RETRY = Kind(Channel, ADDITION, _("Retried"))
"""Target: channel, or "*" for all parked publications. Detail: the key of the row."""

DROP = Kind(Channel, DELETION, _("Dropped"))
"""As `RETRY`."""


def record(user_id: int | str | UUID, kind: Kind, targets: Sequence[str], detail: str = "") -> None:
    """Add one entry for each target.

    Args:
        user_id: primary key of the Django user to whom the entries belong.
        kind: of the action.
        targets: channels or user IDs.
        detail: added to the text of the kind, cut after `DETAIL_MAX_LENGTH` characters.
    """
    if len(detail) > DETAIL_MAX_LENGTH:
        detail = detail[:DETAIL_MAX_LENGTH] + "…"
    detail = detail.replace("\0", "\N{SYMBOL FOR NULL}")
    words = str(kind.words)
    LogEntry.objects.log_actions(
        user_id=user_id,
        # names may hold null characters, which not every database stores
        queryset=[kind.model(pk=target.replace("\0", "\N{SYMBOL FOR NULL}")) for target in targets],
        action_flag=kind.flag,
        # not the detail alone: Django parses messages that begin with a bracket
        change_message=f"{words}{_SEPARATOR}{detail}" if detail else words,
    )


def entries(kind: Kind) -> QuerySet[LogEntry]:
    """Return the entries about the targets of a kind of action, newest first."""
    content_type = ContentType.objects.get_for_model(kind.model)
    matching = LogEntry.objects.filter(content_type=content_type)
    return matching.select_related("user").order_by("-action_time", "-pk")


def detail_of(entry: LogEntry) -> str:
    """Return the detail of an entry, whatever the language of its text."""
    return entry.change_message.partition(_SEPARATOR)[2]
