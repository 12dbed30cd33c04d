"""Registering feeds: `model` ties a feed to its model, its channels and its permission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model

from realtime.live.rows import changes, follows, permission
from realtime.live.rows.feeds import Feed, LiveFeed, concrete, feeds

F = TypeVar("F", bound=type[Feed])


def model(of: Any) -> Callable[[F], F]:
    """Register a feed of the rows of a model. Write it into the module `realtime.py` of your app.

    Args:
        of: the model. Of a proxy, the rows are read through the proxy.

    Raises:
        ImproperlyConfigured: the app "realtime.live" is not installed.
        TypeError, ValueError, FieldDoesNotExist: the model cannot be live, or the feed has a
            mistake.
    """
    if not apps.is_installed("realtime.live"):
        raise ImproperlyConfigured(
            'Live models need the app: add "realtime.live" to INSTALLED_APPS.'
        )
    is_model = isinstance(of, type) and issubclass(of, Model) and of is not Model
    if not is_model or of._meta.abstract:
        raise TypeError(f"a model with a table expected, not {of!r}")
    if len(of._meta.pk_fields) > 1:
        raise ValueError(f"{of.__name__} cannot be live: its primary key is composite")

    def register(kind: F) -> F:
        if Feed not in getattr(kind, "__mro__", ()):
            raise TypeError(f"a subclass of Feed expected, not {kind!r}")
        feed = LiveFeed(of, kind)
        permission.guard(feed)
        feeds.add(feed)
        changes.watch(concrete(of))
        follows.follow(feed)
        return kind

    return register
