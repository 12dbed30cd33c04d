"""What the tests of answers share: rows, channels, and readers over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
from django.utils import timezone

import realtime
from realtime import channel_rules
from realtime.answers.models import Answer
from realtime.config import sources
from realtime.hooks.site_values import to_payload
from realtime.protocol.messages import ClientInfo
from realtime.serving import serving
from tests.server import Server
from tests.site.answers import WORDS


def channel() -> str:
    return f"chat:{uuid.uuid4().hex}"


def statuses(*rows: Answer) -> list[str]:
    return [Answer.objects.get(pk=row.pk).status for row in rows]


def data(name: str) -> list[Any]:
    return [each["data"] for each in realtime.history(name)]


def write_as(user: str, name: str, value: object) -> None:
    """Publish as a client of a user does."""
    options = channel_rules.options_of(name, sources.current())
    info = ClientInfo(user=user, client="C")
    serving.call(lambda member: member.publish(name, to_payload(value), options, info))


def ended_ago(row: Answer, ago: timedelta) -> None:
    Answer.objects.filter(pk=row.pk).update(ended=timezone.now() - ago)


def text_of(count: int) -> str:
    return "".join(f"{WORDS[number % len(WORDS)]} {number} " for number in range(count))


@asynccontextmanager
async def browsing(site: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=site.address, timeout=30, trust_env=False, limits=httpx.Limits()
    ) as client:
        yield client


async def begun(
    client: httpx.AsyncClient, count: int, *, namespace: str = "chat", **params: Any
) -> str:
    """Begin an answer that nobody reads. Return its ID."""
    response = await client.post(
        f"/{namespace}/{uuid.uuid4().hex}", params={"count": count, "id": 1, **params}
    )
    answer_id: str = response.json()["id"]
    return answer_id
