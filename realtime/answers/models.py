"""Answers in the site's database.

    waiting ──► queued ──► streaming ──┬──► complete       the producer left its block
       │           │                   ├──► stopped        by its reader, or for another answer
       └───────────┴───────────────────┼──► failed         an exception, or queued for too long
                                       └──► interrupted    the producer's process died

Invariants:
- The channel of an answer has one last publication, and the row has the status in it. A process
  publishes the end of an answer before it ends the row. The engine takes one end; a process whose
  end it refuses writes the status of that one into the row.
- The process that ends the row calls the site's `answer_end`, in that transaction.
- `busy` is unique: of the answers in one channel that may not run beside others, one is queued or
  streaming.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar

from django.db import models, router
from django.db.models import QuerySet
from django.utils import timezone

from realtime.answers import forms
from realtime.answers.forms import Status as Status
from realtime.server_api.arguments import Position

CHANNEL = "answer:"
"""What follows is the ID of the answer: the name of its own channel."""


UNENDED = (Status.WAITING, Status.QUEUED, Status.STREAMING)


class Answer(models.Model):
    """One answer, from its request to its end."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    channel = models.CharField(max_length=255)
    user = models.CharField(max_length=255, default="")
    """The user ID of who asked; "" for an anonymous visitor."""
    form = models.CharField(max_length=8)
    status = models.CharField(max_length=12, default=Status.QUEUED.value)
    busy = models.CharField(max_length=64, null=True, unique=True)
    producer = models.CharField(max_length=32, default="")
    """The process that writes."""
    text = models.TextField(default="")
    parts = models.JSONField(default=list)
    """Its chunks, joined; none in the form `text`."""
    position = models.BigIntegerField(default=0)
    epoch = models.CharField(max_length=255, default="")
    """Up to where in its channel `text` and `parts` are."""
    error = models.TextField(default="")
    """Why it failed, for the site."""
    created = models.DateTimeField(default=timezone.now)
    queued = models.DateTimeField(default=timezone.now)
    """When its turn came."""
    ended = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[Answer]]

    params: Mapping[str, str] = {}
    """In a hook: name in the pattern → its text in the channel."""

    class Meta:
        db_table = "realtime_answer"
        indexes: ClassVar = [
            models.Index(fields=["status", "ended"], name="realtime_answer_status"),
            models.Index(fields=["channel", "created"], name="realtime_answer_channel"),
            models.Index(fields=["user", "status"], name="realtime_answer_user"),
        ]

    def __str__(self) -> str:
        return f"{self.id} in {self.channel}: {self.status}"

    @property
    def own_channel(self) -> str:
        """The channel of its chunks."""
        return f"{CHANNEL}{self.id}"

    @property
    def has_ended(self) -> bool:
        """Whether nothing follows."""
        return self.status not in UNENDED

    @property
    def of_form(self) -> forms.Form:
        """Its form."""
        return forms.FORMS[self.form]

    @property
    def saved(self) -> Position | None:
        """The position up to which the row has its chunks; None where the row has none."""
        return Position(self.position, self.epoch) if self.epoch else None

    def chunks(self) -> list[Any]:
        """Return what the row has of it, as chunks."""
        if self.form == "text":
            return [self.text] if self.text else []
        return list(self.parts)

    def content(self, chunks: list[Any]) -> dict[str, Any]:
        """Return the fields that have its chunks."""
        parts = [] if self.form == "text" else chunks
        return {"text": forms.text_of(self.of_form, chunks), "parts": parts}


def database() -> str:
    """Return the alias of the database that has the rows."""
    return router.db_for_write(Answer)


def answers(**conditions: Any) -> QuerySet[Answer]:
    """Return the answers that meet some conditions."""
    return Answer.objects.using(database()).filter(**conditions)


def busy_key(channel: str) -> str:
    """Return the value of `busy` for a channel: databases may compare names without their case."""
    return sha256(channel.encode()).hexdigest()
