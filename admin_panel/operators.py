"""The operator of a page: their permissions, and the log of their actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_permission_codename, get_user_model
from django.db import router, transaction

from realtime.channel_rules import namespace_of
from realtime.config import sources
from realtime.config.reader import InvalidOptions

from .answering import Unavailable, answering
from .audit import ActionKind, record
from .permissions import APP_LABEL, codename

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class HasPermission:
    """An attribute that says whether an operator has a permission of the panel."""

    def __init__(self, codename: str) -> None:
        self._codename = codename

    def __get__(self, operator: Operator, owner: type[Operator]) -> bool:
        return operator.has(self._codename)


class Operator(ABC):
    """The operator, as pages and templates see them."""

    may_view = HasPermission("view")
    may_disconnect = HasPermission("disconnect")
    may_unsubscribe = HasPermission("unsubscribe")
    may_block = HasPermission("block")
    may_trace = HasPermission("trace")
    may_remove_history = HasPermission("remove_history")
    may_manage_pending = HasPermission("manage_pending")

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the panel shows."""

    @property
    @abstractmethod
    def may_find_people(self) -> bool:
        """Whether they may look for users of the site by name and e-mail address."""

    @abstractmethod
    def has(self, codename: str) -> bool:
        """Return whether they have a permission of the panel."""

    @abstractmethod
    def user_id(self) -> Any:
        """Return the primary key of the Django user to whom entries of the log belong."""

    def may_publish(self, channel: str) -> bool:
        """Return whether they may publish into a channel.

        In templates: `operator|may_publish:channel`.
        """
        if self.has("publish"):
            return True
        namespace = namespace_of(channel, sources.current())
        return bool(namespace) and self.has(codename(namespace))

    @property
    def may_publish_somewhere(self) -> bool:
        """Whether they may publish into any channel at all.

        The index of the admin asks, and its login, where the options may have mistakes.
        """
        if self.has("publish"):
            return True
        try:
            namespaces = sources.current().namespaces
        except InvalidOptions:
            return False
        return any(map(self.has, map(codename, namespaces)))

    def log(self, kind: ActionKind, targets: Sequence[str], detail: str = "") -> LogEntry:
        """Log an act of this operator in one entry, and return it; see `audit.record`."""
        return record(self.user_id(), kind, targets, detail)

    @contextmanager
    def logged(self, kind: ActionKind, *targets: str, detail: str = "") -> Iterator[LogEntry]:
        """Log the act of the `with` block on these targets in one entry, unless it raises.

        The block is given the entry, which stays, too, if the act may be done without an answer.
        Errors that keep the service from answering become `Unavailable`.

        In the block, publish with `on_commit=False`, as `service.publish` does: a publication
        after the commit could fail although it is logged.
        """
        unanswered: Unavailable | None = None
        with transaction.atomic(using=router.db_for_write(LogEntry)):
            entry = self.log(kind, targets, detail)
            try:
                with answering():
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
    def may_find_people(self) -> bool:
        options = get_user_model()._meta  # as in the admin, to view them
        return self._user.has_perm(
            f"{options.app_label}.{get_permission_codename('view', options)}"
        )

    def has(self, codename: str) -> bool:
        return self._user.has_perm(f"{APP_LABEL}.{codename}")

    def user_id(self) -> Any:
        assert self._user.pk is not None, "an operator without a user cannot act"
        return self._user.pk
