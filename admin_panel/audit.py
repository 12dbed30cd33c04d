"""The log of what operators do, in the admin's log: who did what, and to which channels or users.

One act is one entry, however many channels it is about. What an entry keeps:

object_id        the target; of several, one name on each line, see `channel_names`
object_repr      the targets as text, the first 200 characters
change_message   the kind, in English, and after a colon the detail

Pages go through the entries by primary key, because Django has no index on their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import models, router, transaction
from django.db.models import Q, QuerySet
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from . import channel_names
from .models import Channel, Connection, Publication

DETAIL_MAX_LENGTH = 500
"""Characters of published data in an entry."""

ALL = "*"
"""The target of an act on all of something."""

_REPRESENTATION_MAX_LENGTH = 200
_KEY_MAX_DIGITS = 18
"""Digits that every database can compare with a key."""

_SEPARATOR = ": "
_NULL = "\N{SYMBOL FOR NULL}"
"""In place of null characters, which not every database stores."""


class ActionKind(NamedTuple):
    """A kind of action: the model of its target, its flag in the log, and its text."""

    model: type[models.Model]
    flag: int
    words: str | Promise

    @property
    def code(self) -> str:
        """The text in English: entries begin with it, and queries name the kind by it."""
        with translation.override(None):
            return str(self.words)


PUBLISH = ActionKind(Publication, ADDITION, _("Published"))
"""Targets: channels. Detail: the data."""

DISCONNECT = ActionKind(Connection, DELETION, _("Disconnected"))
"""Target: user ID. Detail: the client ID, "" for all connections."""

BLOCK = ActionKind(Connection, DELETION, _("Blocked"))
"""Target: user ID. Detail: for how long."""

UNBLOCK = ActionKind(Connection, ADDITION, _("Unblocked"))
"""Target: user ID."""

TRACE = ActionKind(Connection, CHANGE, _("Frames followed"))
"""Target: user ID. Detail: for how long, and whether without payloads."""

UNSUBSCRIBE = ActionKind(Connection, DELETION, _("Unsubscribed"))
"""Target: user ID. Detail: the channel, "" for all channels."""

REMOVE_HISTORY = ActionKind(Channel, DELETION, _("History removed"))
"""Target: channel."""

RETRY = ActionKind(Channel, ADDITION, _("Retried"))
"""Target: channel, or `ALL` for all parked publications. Detail: the key of the row."""

DROP = ActionKind(Channel, DELETION, _("Dropped"))
"""As `RETRY`."""


def kinds() -> list[ActionKind]:
    """Return the kinds of this module, in their order."""
    return [value for value in globals().values() if isinstance(value, ActionKind)]


def record(
    user_id: int | str | UUID, kind: ActionKind, targets: Sequence[str], detail: str = ""
) -> LogEntry:
    """Add one entry for an act.

    Args:
        user_id: primary key of the Django user to whom the entry belongs.
        kind: of the act.
        targets: channels or user IDs, at least one.
        detail: added to the text of the kind, cut after `DETAIL_MAX_LENGTH` characters.

    Returns:
        The entry.
    """
    if len(detail) > DETAIL_MAX_LENGTH:
        detail = detail[:DETAIL_MAX_LENGTH] + "…"
    detail = detail.replace("\0", _NULL)
    content_type = ContentType.objects.get_for_model(kind.model)
    fields: dict[str, Any] = {
        "user_id": user_id,
        "content_type_id": content_type.pk,
        "action_flag": kind.flag,
        # not the detail alone: Django parses messages that begin with a bracket
        "change_message": f"{kind.code}{_SEPARATOR}{detail}" if detail else kind.code,
    }
    return LogEntry.objects.create(**fields, **_about(targets))


def narrow(entry: LogEntry, targets: Sequence[str]) -> None:
    """Keep in an entry only the targets that the act has reached; with none, delete it."""
    if not targets:
        entry.delete()
        return
    for name, value in _about(targets).items():
        setattr(entry, name, value)
    entry.save(update_fields=["object_id", "object_repr"])


@contextmanager
def reading() -> Iterator[None]:
    """Read entries in this block: then a failure does not end the transaction of the request."""
    with transaction.atomic(using=router.db_for_read(LogEntry)):
        yield


def entries(kind: ActionKind | None = None) -> QuerySet[LogEntry]:
    """Return the entries of a kind of act, or of all acts in the panel, newest first."""
    found = LogEntry.objects.select_related("user", "content_type").order_by("-pk")
    if kind is None:
        types = ContentType.objects.get_for_models(Publication, Channel, Connection).values()
        return found.filter(content_type__in=[each.pk for each in types])
    content_type = ContentType.objects.get_for_model(kind.model)
    return found.filter(
        content_type=content_type, action_flag=kind.flag, change_message__startswith=kind.code
    )


class Filter(NamedTuple):
    """What a page of the log is about. Empty fields do not filter."""

    kind: ActionKind | None = None
    operator: str = ""
    """A part of the username."""
    target: str = ""
    """A channel or user ID."""
    text: str = ""
    """A part of the targets or of the detail."""
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""

    def newest(self, number: int, before: int | None = None) -> list[LogEntry]:
        """Return the newest entries that pass, newest first.

        Args:
            number: how many at most.
            before: only entries older than the one with this primary key.
        """
        passing = self._entries()
        if before is not None:
            passing = passing.filter(pk__lt=before)
        # first the keys alone: databases that sort all entries need not sort their texts
        keys = list(passing.values_list("pk", flat=True)[:number])
        return list(entries().filter(pk__in=keys))

    def _entries(self) -> QuerySet[LogEntry]:
        found = entries(self.kind)
        if self.operator:
            name = get_user_model().USERNAME_FIELD
            found = found.filter(**{f"user__{name}__icontains": self.operator})
        if self.target:
            found = found.filter(_has(self.target))
        if self.text:
            words = Q(change_message__icontains=self.text) | Q(object_id__icontains=self.text)
            found = found.filter(words)
        if self.since is not None:
            found = found.filter(action_time__gte=self.since)
        if self.until is not None:
            found = found.filter(action_time__lt=self.until)
        return found


def kind_of(entry: LogEntry) -> ActionKind | None:
    """Return the kind of an entry; None for one that this release does not know."""
    head = head_of(entry)
    model = entry.content_type.model if entry.content_type else ""
    for kind in kinds():
        if (kind.model._meta.model_name, kind.flag, kind.code) == (model, entry.action_flag, head):
            return kind
    return None


def head_of(entry: LogEntry) -> str:
    """Return what an entry says before its detail: its kind, as it was written."""
    return entry.change_message.partition(_SEPARATOR)[0]


def key_of(text: str) -> int | None:
    """Return the primary key that a query names; None if the text cannot be one."""
    is_key = len(text) <= _KEY_MAX_DIGITS and text.isascii() and text.isdigit()
    return int(text) if is_key else None


def detail_of(entry: LogEntry) -> str:
    """Return the detail of an entry, whatever the language of its text."""
    return entry.change_message.partition(_SEPARATOR)[2]


def targets_of(entry: LogEntry) -> list[str]:
    """Return the channels or user IDs that an entry is about."""
    written = entry.object_id or ""
    return channel_names.split(written) if "\n" in written else [written]


def is_about_all(entry: LogEntry) -> bool:
    """Return whether an act was on all that there was at that moment."""
    return kind_of(entry) in (RETRY, DROP) and entry.object_id == ALL


def _about(targets: Sequence[str]) -> dict[str, str]:
    names = [target.replace("\0", _NULL) for target in targets]
    is_list = len(names) > 1 or "\n" in names[0]
    return {
        # a line break at the end, too: `_has` looks for a whole line
        "object_id": channel_names.join(names) + "\n" if is_list else names[0],
        "object_repr": ", ".join(names)[:_REPRESENTATION_MAX_LENGTH],
    }


def _has(target: str) -> Q:
    line = channel_names.join([target]) + "\n"
    among = Q(object_id__startswith=line) | Q(object_id__contains=f"\n{line}")
    return Q(object_id=target) | among
