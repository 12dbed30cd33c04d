"""Checks of optional apps: durable publications are kept and published, users online are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage
from django.db import DatabaseError

from realtime.checks.table import Found, check, places
from realtime.config.channel_options import PER_USER
from realtime.config.sources import Report
from realtime.engine import factory
from realtime.serving import serving


@check("realtime.E047", 'Add "realtime.pending" to INSTALLED_APPS, and migrate.')
def check_durable(report: Report) -> Found:
    """E047: `durable` is on, but the app `realtime.pending` is not installed."""
    for place, options in places(report.config).items():
        if options.durable and serving.row_writer is None:
            yield f"durable is on in {place}, but the app is not installed: publishing fails."


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
            hint="Any process that serves clients publishes them: see its log, and the engine's.",
            id="realtime.W034",
        )
    ]


@check("realtime.W050")
def check_online(report: Report) -> Found:
    """W050: `realtime.online` is installed, and finds no users: the engine is dummy, or the site
    has no `django.contrib.auth`.
    """
    if serving.online is None:
        return
    if not apps.is_installed("django.contrib.auth"):
        yield (
            "realtime.online finds no one: the site has no users: django.contrib.auth is not"
            " installed.",
            "Install it, or remove realtime.online.",
        )
    elif factory.is_dummy(report.config):
        yield (
            "realtime.online finds no one: the engine is dummy, which knows no connections.",
            "Choose another engine where clients connect.",
        )


@check("realtime.W051", "Turn presence on.")
def check_joins_of_users(report: Report) -> Found:
    """W051: `join_leave` is "user" in channels without presence: a page learns who comes and goes,
    and not who is there.
    """
    for place, options in places(report.config).items():
        if options.join_leave == PER_USER and not options.presence:
            yield (
                f'join_leave is "user" in {place}, without presence: a page learns who comes and'
                " goes, and not who is there."
            )
