"""Who is online: the contract between the service and the app that knows the users of the site.

When Django loads the app `realtime.online`, the app gives `serving` an `OnlineUsers`. Nothing
outside the app imports it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from django.core.exceptions import ImproperlyConfigured

from realtime.protocol.messages import UserID
from realtime.server_api.node_apps import NodeApp


class OnlineUsers(NodeApp, Protocol):
    """Finds users of the site, and keeps when they were online last."""

    def with_ids(self, ids: Iterable[UserID]) -> Any:
        """Return a QuerySet of the users of the site with these IDs."""


def online_users(online: OnlineUsers | None) -> OnlineUsers:
    """Return what finds users in this process.

    Raises:
        ImproperlyConfigured: the app is not installed.
    """
    if online is None:
        raise ImproperlyConfigured(
            'To find users the service needs the app: add "realtime.online" to INSTALLED_APPS.'
        )
    return online
