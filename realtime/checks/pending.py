"""Checks of durable publications: that they can be kept, and that relays publish them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage
from django.db import DatabaseError

from realtime.config.sources import Report
from realtime.serving import serving


def check_durable(report: Report) -> list[CheckMessage]:
    """E047: `durable` is on, but the app `realtime.pending` is not installed."""
    if serving.row_writer is not None:
        return []
    config = report.config
    places = ["the top level"] if config.channel.durable else []
    places += [f"namespace {name!r}" for name, each in config.namespaces.items() if each.durable]
    return [
        checks.Error(
            f"durable is on in {place}, but the app is not installed: publishing fails.",
            hint='Add "realtime.pending" to INSTALLED_APPS, and migrate.',
            id="realtime.E047",
        )
        for place in places
    ]


def check_pending(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """W034: with `--database`: a durable publication has been waiting for more than a minute."""
    rows = serving.pending
    if rows is None or not databases:
        return []
    try:
        overview = rows.overview(databases)
    except DatabaseError:  # `migrate` runs this before it makes the table
        return []
    if not overview.is_late:
        return []
    return [
        checks.Warning(
            f"{overview.waiting} durable publications wait, one for {overview.oldest:.0f} s.",
            hint="Any process that serves clients publishes them: see its log, and Redis.",
            id="realtime.W034",
        )
    ]
