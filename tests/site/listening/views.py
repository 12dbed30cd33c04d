"""Views that publish in transactions. The body is a JSON object of arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

import realtime


def kept(channel: str) -> list[Any]:
    """What is published by now, as history has it."""
    return [entry["data"] for entry in realtime.history(channel)]


def atomic(channel: str) -> Any:
    """Publish in a transaction; what is there before and after its commit."""
    with transaction.atomic():
        realtime.publish(channel, 1)
        realtime.publish_many([(channel, 2), (channel, 3)])
        before = kept(channel)
    return [before, kept(channel)]


def rolled_back(channel: str) -> Any:
    """Publish in a transaction that is rolled back."""
    with transaction.atomic():
        realtime.publish(channel, 1)
        transaction.set_rollback(True)
    return kept(channel)


def savepoints(channel: str) -> Any:
    """Publish around a savepoint that is rolled back."""
    with transaction.atomic():
        realtime.publish(channel, 1)
        with transaction.atomic():
            realtime.publish(channel, 2)
            transaction.set_rollback(True)
        with transaction.atomic():
            realtime.publish(channel, 3)
    return kept(channel)


def at_once(channel: str) -> Any:
    """Publish without waiting for the commit, which does not come."""
    with transaction.atomic():
        realtime.publish(channel, 1, on_commit=False)
        before = kept(channel)
        transaction.set_rollback(True)
    return before


def save(channel: str, undo: bool) -> Any:
    """Save a row, of which a handler publishes."""
    with transaction.atomic():
        Group.objects.create(name=channel)
        before = kept(channel)
        transaction.set_rollback(undo)
    return [before, kept(channel)]


def refused(channel: str) -> Any:
    """Publish what cannot be, in a transaction; the errors, and what is there in the end."""
    errors = []
    with transaction.atomic():
        for publications in ([("nope:a", 1)], [(channel, 1), ("", 2)], [(channel, object())]):
            try:
                realtime.publish_many(publications)
            except Exception as error:
                errors.append(type(error).__name__)
    return [errors, kept(channel)]


def in_request(channel: str, fail: bool) -> Any:
    """Publish; whether that is in a transaction is for ATOMIC_REQUESTS to say."""
    Group.objects.create(name=channel)
    realtime.publish(channel, 1)
    before = kept(channel)
    if fail:
        raise LookupError("the view is broken")
    return before


ACTIONS: dict[str, Callable[..., Any]] = {
    action.__name__: action
    for action in (atomic, rolled_back, savepoints, at_once, save, refused, in_request)
}


@csrf_exempt
def do(request: HttpRequest, action: str) -> JsonResponse:
    """Do one of them."""
    return JsonResponse({"result": ACTIONS[action](**json.loads(request.body))})
