"""The operator of a page: their permissions, and the log of their actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.contrib.admin.models import LogEntry
from django.db import router, transaction

from . import permissions
from .answering import Unavailable
from .audit import Kind, record

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class Operator(ABC):
    """The operator, as pages and templates see them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the panel shows."""

    @property
    @abstractmethod
    def may_view(self) -> bool:
        """Whether they may open the pages that show nodes, channels, users and options."""

    @abstractmethod
    def may_publish(self, channel: str) -> bool:
        """Return whether they may publish into a channel.

        In templates: `operator|may_publish:channel`.
        """

    @property
    @abstractmethod
    def may_publish_somewhere(self) -> bool:
        """Whether they may publish into any channel at all."""

    @property
    @abstractmethod
    def may_disconnect(self) -> bool:
        """Whether they may disconnect users."""

    @property
    @abstractmethod
    def may_unsubscribe(self) -> bool:
        """Whether they may unsubscribe users from channels."""

    @property
    @abstractmethod
    def may_block(self) -> bool:
        """Whether they may block and unblock users."""

    @property
    @abstractmethod
    def may_trace(self) -> bool:
        """Whether they may follow the frames of users."""

    @property
    @abstractmethod
    def may_find_people(self) -> bool:
        """Whether they may look for users of the site by name and e-mail address."""

    @property
    @abstractmethod
    def may_remove_history(self) -> bool:
        """Whether they may remove the history of channels."""

    @property
    @abstractmethod
    def may_manage_pending(self) -> bool:
        """Whether they may retry and drop durable publications that were refused."""

    @abstractmethod
    def log(self, kind: Kind, targets: Sequence[str], detail: str = "") -> LogEntry:
        """Log an act of this operator in one entry, and return it; see `audit.record`."""

    @contextmanager
    def logged(self, kind: Kind, *targets: str, detail: str = "") -> Iterator[LogEntry]:
        """Log the act of the `with` block on these targets in one entry, unless it raises.

        The block is given the entry, which stays, too, if the act may be done without an answer.

        In the block, publish with `on_commit=False`, as `service.publish` does: a publication
        after the commit could fail although it is logged.
        """
        unanswered: Unavailable | None = None
        with transaction.atomic(using=router.db_for_write(LogEntry)):
            entry = self.log(kind, targets, detail)
            try:
                yield entry
            except Unavailable as unavailable:
                if not unavailable.may_be_done:
                    raise
                unanswered = unavailable
        if unanswered is not None:
            raise unanswered


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
    def may_block(self) -> bool:
        return permissions.may_block(self._user)

    @property
    def may_trace(self) -> bool:
        return permissions.may_trace(self._user)

    @property
    def may_find_people(self) -> bool:
        return permissions.may_find_people(self._user)

    @property
    def may_remove_history(self) -> bool:
        return permissions.may_remove_history(self._user)

    @property
    def may_manage_pending(self) -> bool:
        return permissions.may_manage_pending(self._user)

    def log(self, kind: Kind, targets: Sequence[str], detail: str = "") -> LogEntry:
        assert self._user.pk is not None, "an operator without a user cannot act"
        return record(self._user.pk, kind, targets, detail)
