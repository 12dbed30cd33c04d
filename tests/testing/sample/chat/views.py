"""Writing in a room."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from chat.models import Room
from realtime import publish


@transaction.atomic
def write(request: HttpRequest, room: str) -> HttpResponse:
    """Keep a message and publish it; longer than ten characters is too long."""
    found = get_object_or_404(Room, name=room, members=request.user)
    message = found.message_set.create(text=request.POST["text"])
    publish(f"chat:{room}", {"text": message.text})
    if len(message.text) > 10:
        transaction.set_rollback(True)
        return HttpResponse(status=400)
    return HttpResponse(status=201)
