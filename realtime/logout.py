"""Ends connections that belong to a login that ended: logout, password change, deactivation.

Django's signals are followed; every node closes, or looks again at, the connections that are
concerned. Nothing here runs unless `session_authentication` is on.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.contrib.sessions.backends import signed_cookies
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.signals import setting_changed
from django.db.models.signals import post_delete, post_save
from django.utils import timezone

from realtime.config import sources
from realtime.config.reader import InvalidOptions
from realtime.errors import Disconnect, DisconnectExpired, DisconnectForced, NotServing
from realtime.hooks.login import LOGIN_KEY, digest, of
from realtime.server_api import transactions
from realtime.serving import serving

logger = logging.getLogger("realtime.logins")


FIELDS = {"password", "is_active"}
"""Of a user: saving only others ends no login."""


def connect_signals() -> None:
    """Follow what Django says about sessions and users, now or when settings turn it on."""
    setting_changed.connect(_follow, dispatch_uid="realtime.logins")
    _follow()


def _follow(**_: Any) -> None:
    # with a receiver Django deletes rows one by one: none where it is not needed, and senders
    # are named, proxies of the user model too
    if not _in_use():
        return
    user_logged_in.connect(_logged_in, dispatch_uid="realtime.logged_in")
    user_logged_out.connect(_logged_out, dispatch_uid="realtime.logged_out")
    for model in apps.get_models():
        if issubclass(model, get_user_model()):
            post_save.connect(_user_saved, sender=model, dispatch_uid="realtime.user_saved")
            post_delete.connect(_user_deleted, sender=model, dispatch_uid="realtime.user_deleted")
        elif issubclass(model, AbstractBaseSession):
            post_delete.connect(_session_deleted, sender=model, dispatch_uid="realtime.session")


def _in_use() -> bool:
    try:
        return sources.current().session_authentication
    except InvalidOptions:
        return False  # the system checks say it, and the site goes on


def _logged_in(request: Any = None, **_: Any) -> None:
    session = getattr(request, "session", None)
    if _in_use() and isinstance(session, signed_cookies.SessionStore):
        # its key is the whole cookie, which is another one after every change
        session.setdefault(LOGIN_KEY, secrets.token_urlsafe(16))


def _logged_out(request: Any = None, user: Any = None, **_: Any) -> None:
    session = getattr(request, "session", None)
    login = "" if session is None else of(session)
    if user is not None and login:
        _after_commit(None, lambda: _tell(str(user.pk), login, DisconnectForced()))


def _user_saved(
    instance: Any,
    created: bool,
    raw: bool = False,
    update_fields: Any = None,
    using: str | None = None,
    **_: Any,
) -> None:
    concerns = update_fields is None or not FIELDS.isdisjoint(update_fields)
    if concerns and not (created or raw):
        _look_again(instance, using)


def _user_deleted(instance: Any, using: str | None = None, **_: Any) -> None:
    _look_again(instance, using)


def _session_deleted(instance: Any, using: str | None = None, **_: Any) -> None:
    """A page that has a new session, after a change of its password, may come back with it."""
    if instance.expire_date < timezone.now():
        return  # nobody is connected by it any more; clearsessions deletes many
    try:
        user = str(get_user_model()._meta.pk.to_python(instance.get_decoded()[SESSION_KEY]))
    except Exception:
        return  # nobody was logged in; a deletion does not fail for a session nobody can read
    login = digest(instance.session_key)
    _after_commit(using, lambda: _tell(user, login, DisconnectExpired()))


def _look_again(instance: Any, using: str | None) -> None:
    user = str(instance.pk)
    _after_commit(using, lambda: _tell(user, ""))


def _after_commit(using: str | None, work: Callable[[], None]) -> None:
    if not _in_use():
        return
    if transactions.in_transaction(using):
        transactions.after_commit(work, "realtime.logins", using)
    else:
        work()


def _tell(user: str, login: str, disconnect: Disconnect | None = None) -> None:
    """Have every node close the connections of a login; "" looks at all logins of a user."""
    try:
        serving.call(lambda member: member.end_auth_session(user, login, disconnect))
    except NotServing:
        pass  # nobody is connected to this process, and it reaches no other
    except Exception:  # a logout does not fail for it
        logger.exception("Connections of a login that ended could not be closed")
