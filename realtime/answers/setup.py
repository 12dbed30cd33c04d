"""What the app adds to the service: namespace, permission, methods, sweeper, and the users' end."""

from __future__ import annotations

import logging
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models.signals import post_delete

from realtime.answers import permission, rows, stream
from realtime.answers.models import CHANNEL, Answer, Status, answers
from realtime.answers.sweeper import AnswerSweeper
from realtime.config import parts
from realtime.config.channel_options import ChannelOptions
from realtime.config.sources import configuration
from realtime.errors import BadRequest, EngineUnavailable
from realtime.hooks.registry import registry
from realtime.hooks.requests import RPCRequest
from realtime.hooks.site_values import user_id
from realtime.server_api.queries import history_remove, position
from realtime.serving import serving

logger = logging.getLogger("realtime.answers")

NAMESPACE = CHANNEL.rstrip(":")

OPTIONS = ChannelOptions(
    history_size=5000,
    history_lifetime=24 * 3600,
    force_recovery=True,
    allow_subscribe_for_client=True,
    allow_subscribe_for_anonymous=True,
    join_on_read=True,
)
"""Of the namespace, unless the site has a namespace of this name."""


def install() -> None:
    """Add the app to the service of this process."""
    parts.namespaces[NAMESPACE] = OPTIONS
    configuration.forget(setting="REALTIME")  # an app before this one may have read it
    registry.add_guard(f"{CHANNEL}{{id}}", permission.decide)
    registry.methods.setdefault("realtime.answer", describe)
    registry.methods.setdefault("realtime.stop", stop)
    serving.apps.append(AnswerSweeper())
    if apps.is_installed("django.contrib.auth"):
        for model in apps.get_models():  # proxies of the user model among them
            if issubclass(model, get_user_model()):
                post_delete.connect(_user_deleted, sender=model, dispatch_uid=__name__)


def describe(request: RPCRequest) -> dict[str, Any]:
    """Return an answer as its row has it: the method `realtime.answer`, for `client.js`."""
    row = _row(request)
    permission.check_read(row, request)
    # clients of the first generation recover from the beginning only if they know the epoch
    epoch = row.epoch if row.epoch or row.has_ended else position(row.own_channel).epoch
    return {
        "id": str(row.pk),
        "channel": row.own_channel,
        "form": row.form,
        "status": row.status,
        "text": row.text,
        "parts": row.parts,
        "offset": max(row.position, 0),
        "epoch": epoch,
    }


def stop(request: RPCRequest) -> dict[str, str]:
    """Stop an answer: the method `realtime.stop`."""
    row = _row(request)
    permission.check_stop(row, request)
    return {"status": rows.end(row, Status.STOPPED).status}


def _row(request: RPCRequest) -> Answer:
    data = request.data
    row = rows.fetch(data.get("id")) if isinstance(data, dict) else None
    if row is None:
        raise BadRequest
    return row


def _user_deleted(instance: Any, using: str, **_: Any) -> None:
    """Delete the answers of a user who was deleted; those that run stop."""
    user = user_id(instance) if instance.pk is not None else ""
    if not user:
        return

    def delete() -> None:
        for row in answers(user=user):
            try:
                if not row.has_ended:
                    stream.end(row, Status.STOPPED)
                elif row.position >= 0:
                    history_remove(row.own_channel)
            except EngineUnavailable:
                logger.warning("Chunks of answers of a deleted user stay for a day at most")
            row.delete()

    transaction.on_commit(delete, using=using, robust=True)
