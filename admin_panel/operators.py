"""The operator: who looks at a page, what they may do, and how that is logged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.contrib.admin.models import LogEntry
from django.db import router, transaction

from . import permissions
from .audit import Kind, record

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class Operator(ABC):
    """What pages and templates know of whoever looks at them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How the panel calls this operator."""

    @property
    @abstractmethod
    def may_view(self) -> bool:
        """Open the pages that show nodes, channels, users and options."""

    @abstractmethod
    def may_publish(self, channel: str) -> bool:
        """Publish into this channel. In templates: `operator|may_publish:channel`."""

    @property
    @abstractmethod
    def may_publish_somewhere(self) -> bool:
        """Publish into some channels."""

    @property
    @abstractmethod
    def may_disconnect(self) -> bool:
        """Disconnect users."""

    @property
    @abstractmethod
    def may_unsubscribe(self) -> bool:
        """Unsubscribe users from channels."""

    @property
    @abstractmethod
    def may_remove_history(self) -> bool:
        """Remove the history of channels."""

    @abstractmethod
    def log(self, kind: Kind, targets: Sequence[str], detail: str = "") -> None:
        """Log what this operator does; see `log.record`."""

    @contextmanager
    def logged(self, kind: Kind, *targets: str, detail: str = "") -> Iterator[None]:
        """Log what the block does to these targets. When it raises, nothing is logged.

        In the block, publish with `on_commit=False`, as `service.publish` does: what goes out
        after the commit can fail when it is logged already.
        """
        with transaction.atomic(using=router.db_for_write(LogEntry)):
            self.log(kind, targets, detail)
            yield


class UserOperator(Operator):
    """A user of Django, with the permissions of this app."""

    def __init__(self, user: User | AnonymousUser) -> None:
        self._user = user

    @property
    def name(self) -> str:
        return self._user.get_username()

    @property
    def may_view(self) -> bool:
        return permissions.may_view(self._user)

    def may_publish(self, channel: str) -> bool:
        return permissions.may_publish(self._user, channel)

    @property
    def may_publish_somewhere(self) -> bool:
        return permissions.may_publish_somewhere(self._user)

    @property
    def may_disconnect(self) -> bool:
        return permissions.may_disconnect(self._user)

    @property
    def may_unsubscribe(self) -> bool:
        return permissions.may_unsubscribe(self._user)

    @property
    def may_remove_history(self) -> bool:
        return permissions.may_remove_history(self._user)

    def log(self, kind: Kind, targets: Sequence[str], detail: str = "") -> None:
        assert self._user.pk is not None, "nobody acts who is not signed in"
        record(self._user.pk, kind, targets, detail)
