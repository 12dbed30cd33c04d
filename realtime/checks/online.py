"""Checks of who is online: that users can be found, and of joins and leaves per user."""

from __future__ import annotations

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage

from realtime.config.channel_options import PER_USER
from realtime.config.sources import Report
from realtime.engine import factory
from realtime.serving import serving


def check_online(report: Report) -> list[CheckMessage]:
    """W050: `realtime.online` is installed, and finds no users: the engine is dummy, or the site
    has no `django.contrib.auth`.
    """
    if serving.online is None:
        return []
    if not apps.is_installed("django.contrib.auth"):
        why = "the site has no users: django.contrib.auth is not installed"
        hint = "Install it, or remove realtime.online."
    elif factory.is_dummy(report.config):
        why = "the engine is dummy, which knows no connections"
        hint = "Choose another engine where clients connect."
    else:
        return []
    return [checks.Warning(f"realtime.online finds no one: {why}.", hint=hint, id="realtime.W050")]


def check_joins_of_users(report: Report) -> list[CheckMessage]:
    """W051: `join_leave` is "user" in channels without presence: a page learns who comes and goes,
    and not who is there.
    """
    config = report.config
    places = {"the top level": config.channel}
    places |= {f"namespace {name!r}": each for name, each in config.namespaces.items()}
    return [
        checks.Warning(
            f'join_leave is "user" in {place}, without presence: a page learns who comes and goes,'
            " and not who is there.",
            hint="Turn presence on.",
            id="realtime.W051",
        )
        for place, options in places.items()
        if options.join_leave == PER_USER and not options.presence
    ]
