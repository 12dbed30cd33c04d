"""The rows of answers: how they begin, wait for their turn, and end once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from realtime.answers import forms, stream
from realtime.answers.forms import FORMS
from realtime.answers.models import UNENDED, Answer, Status, answers, busy_key, database
from realtime.channel_rules import check_channel, name
from realtime.config import sources
from realtime.errors import Error, LimitExceeded
from realtime.hooks.registry import registry
from realtime.hooks.runner import call
from realtime.hooks.site_values import user_id
from realtime.server_api.publishing import publish
from realtime.server_api.queries import history_remove
from realtime.serving import serving

logger = logging.getLogger("realtime.answers")

IF_BUSY = ("refuse", "queue", "stop", "beside")

ATTEMPTS = 10
"""How often "stop" ends another answer that came first."""


class Busy(Exception):
    """Another answer is under way in the channel. `answer` is that one; None: it just ended."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__("another answer is under way in this channel")
        self.answer = answer


def begin(channel: str, *, user: Any = "", form: str = "ui", if_busy: str = "refuse") -> Answer:
    """Begin an answer: write its row, in the transaction that is under way.

    After the commit the service publishes `{"answer": ID, "status": "queued"}` in the channel.

    Args:
        channel: such as the channel of a conversation. Its subscribers may read the answer.
        user: who asked: a user, or a user ID. This user may read and stop it.
        form: "ui", "ag-ui", "events" or "text".
        if_busy: while another answer is under way in the channel: "refuse"; "queue" waits until it
            has ended; "stop" ends it; "beside" lets both run.

    Raises:
        Busy: another answer is under way.
        LimitExceeded: the user has as many unended answers as `answers_per_user` allows.
        NamespaceNotFound, BadRequest: there is no such channel.
        ValueError: there is no such form, or no such way.
    """
    for what, given, known in (("form", form, FORMS), ("if_busy", if_busy, IF_BUSY)):
        if given not in known:
            raise ValueError(f"{what} is one of {', '.join(known)}, not {given!r}")
    row = Answer(channel=name(channel), user=user_id(user), form=form)
    check_channel(row.channel, sources.current())
    most = sources.current().answers_per_user
    if row.user and most and answers(user=row.user, status__in=UNENDED).count() >= most:
        raise LimitExceeded
    row.busy = None if if_busy == "beside" else busy_key(row.channel)
    for _ in range(ATTEMPTS):
        if _is_first(lambda: row.save(using=database(), force_insert=True)):
            announce(row)
            return row
        other = running(channel)
        if if_busy == "refuse":
            break
        if if_busy == "queue":
            row.busy, row.status = None, Status.WAITING
        elif other is not None:
            settle(other, Status.STOPPED)  # its turn is for this answer
    raise Busy(other)


def _is_first(write: Callable[[], int | None]) -> bool:
    """Write `busy` into a row. Return False if another answer of the channel has it."""
    try:
        with transaction.atomic(using=database()):
            return write() != 0
    except IntegrityError:
        return False
    except OperationalError as error:
        # threads that insert the same key: one of them may end in a deadlock, with MariaDB
        is_deadlock = "deadlock" in str(error).lower()
        if not is_deadlock or transaction.get_connection(using=database()).in_atomic_block:
            raise
        return False


def running(channel: str) -> Answer | None:
    """Return the answer of a channel that runs, or is about to; None if there is none."""
    return answers(busy=busy_key(channel)).first()


def unended(channel: str) -> list[Answer]:
    """Return the answers of a channel that have not ended, oldest first."""
    rows = answers(channel=channel, status__in=UNENDED)
    return [row for row in rows.order_by("created") if row.channel == channel]


def unended_one(row: Answer) -> QuerySet[Answer]:
    """Return this answer as a query that finds it unless it has ended."""
    return answers(pk=row.pk, status__in=UNENDED)


def leave(row: Answer, error: str) -> None:
    """Have the sweeper end an answer."""
    unended_one(row).update(producer="", error=forms.clean(error))


def announce(row: Answer) -> None:
    """Publish the status of an answer in its channel, after the commit."""
    data = {"answer": str(row.pk), "status": str(row.status)}
    durable = row.has_ended and serving.row_writer is not None
    try:
        publish(row.channel, data, durable=durable or None, fail_silently=not durable)
    except Error as error:  # the site has no such namespace any more
        logger.warning("The status of answer %s is not announced: %s", row.pk, error)


def end(row: Answer, status: str, error: str = "") -> Answer:
    """End an answer that another process may be writing. One that has ended stays as it is.

    Args:
        error: why, for the site.

    Returns:
        The row as it is now.

    Raises:
        ValueError: there is no such status, or an answer goes on after it.
        EngineUnavailable: the engine is away.
        InternalError: the site's `answer_end` failed; the sweeper calls it again.
    """
    if Status(status) in UNENDED:
        raise ValueError(f"an answer does not end as {status}")
    row = settle(row, status, error)
    promote(row.channel)
    return row


def settle(row: Answer, status: str, error: str = "", chunks: list[Any] | None = None) -> Answer:
    """Write the end of an answer into its row, once, with `answer_end` in the same transaction.

    Args:
        chunks: all of them; None to end the channel first.

    Raises:
        EngineUnavailable: the engine is away.
        InternalError: `answer_end` failed, and the row is as before; the sweeper tries again.
    """
    if chunks is None:
        row = fetch(row.pk) or row
        if row.has_ended:
            return row
        status, chunks = stream.end(row, status)
    ended = {"status": status, "error": forms.clean(error), "ended": timezone.now()}
    row.status = status
    try:
        with transaction.atomic(using=database()):
            changed = unended_one(row).update(
                **row.content(chunks), **ended, busy=None, producer=""
            )
            found = fetch(row.pk)
            if changed and found is not None:
                _call_hook(found)
                announce(found)
    except Error:
        leave(row, error)
        raise
    if found is None:  # deleted, with its user
        history_remove(row.own_channel)
    return found or row


def _call_hook(row: Answer) -> None:
    found = registry.find(registry.answer_end, row.channel)
    if found is not None:
        function, row.params = found
        call(function, row, lambda answer: None)


def promote(channel: str) -> None:
    """Let the oldest answer that waits in a channel have its turn, if none runs."""
    waiting = [row for row in unended(channel) if row.status == Status.WAITING]
    if not waiting:
        return
    row, now = waiting[0], timezone.now()
    row.status, one = Status.QUEUED, answers(pk=row.pk, status=Status.WAITING)
    if _is_first(lambda: one.update(status=row.status, busy=busy_key(channel), queued=now)):
        announce(row)


def fetch(answer_id: Any) -> Answer | None:
    """Return an answer; None if there is none with this ID."""
    try:
        return answers(pk=answer_id).first()
    except (ValueError, TypeError, OverflowError, ValidationError):
        return None


def erase(row: Answer) -> None:
    """Remove the text of an answer that has ended, from its row and from its channel.

    Raises:
        ValueError: the answer has not ended.
    """
    if unended_one(row).exists():
        raise ValueError("the answer has not ended: end it first")
    history_remove(row.own_channel)
    answers(pk=row.pk).update(text="", parts=[], position=-1, epoch="")
