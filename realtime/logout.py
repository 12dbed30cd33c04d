"""Close the connections of ended logins: after a logout, a new password, a deactivation.

Django's signals report the changes. Every node then closes the connections of the auth session,
or checks those of the user again. Without `session_authentication` nothing is connected.
"""

from __future__ import annotations

import logging
import secrets
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.contrib.sessions.backends import signed_cookies
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.signals import setting_changed
from django.db.models.signals import post_delete, post_save
from django.utils import timezone

from realtime.cluster.control import EndAuthSession
from realtime.config import sources
from realtime.config.reader import InvalidOptions
from realtime.errors import DisconnectExpired, DisconnectForced, NotServing
from realtime.hooks.login import LOGIN_KEY, auth_session_of, digest
from realtime.server_api import transactions
from realtime.serving import serving

logger = logging.getLogger("realtime.logins")


FIELDS = {"password", "is_active"}
"""Fields of a user. Saving only other ones ends no login."""


def connect_signals() -> None:
    """Connect to Django's signals, now or when settings turn `session_authentication` on."""
    setting_changed.connect(_follow, dispatch_uid="realtime.logins")
    _follow()


def _follow(**_: Any) -> None:
    # a receiver makes Django delete rows one by one, so only the models that matter get one,
    # proxies of the user model among them
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
        return False  # the system checks report it; the site works without the service


def _logged_in(request: Any = None, **_: Any) -> None:
    session = getattr(request, "session", None)
    if _in_use() and isinstance(session, signed_cookies.SessionStore):
        # its key is the whole cookie, which differs after every change
        session.setdefault(LOGIN_KEY, secrets.token_urlsafe(16))


def _logged_out(request: Any = None, user: Any = None, **_: Any) -> None:
    session = getattr(request, "session", None)
    auth_session = "" if session is None else auth_session_of(session)
    if user is not None and auth_session:
        _send_after_commit(None, EndAuthSession(str(user.pk), auth_session, DisconnectForced.code))


def _user_saved(
    instance: Any,
    created: bool,
    raw: bool = False,
    update_fields: Any = None,
    using: str | None = None,
    **_: Any,
) -> None:
    matters = update_fields is None or not FIELDS.isdisjoint(update_fields)
    if matters and not (created or raw):
        _check_again(instance, using)


def _user_deleted(instance: Any, using: str | None = None, **_: Any) -> None:
    _check_again(instance, using)


def _session_deleted(instance: Any, using: str | None = None, **_: Any) -> None:
    """Close the connections of a deleted session. Their clients may reconnect with a new one."""
    if instance.expire_date < timezone.now():
        return  # its connections were closed already; clearsessions deletes many
    try:
        user = str(get_user_model()._meta.pk.to_python(instance.get_decoded()[SESSION_KEY]))
    except Exception:
        return  # without a login, or unreadable, which must not make the deletion fail
    auth_session = digest(instance.session_key)
    _send_after_commit(using, EndAuthSession(user, auth_session, DisconnectExpired.code))


def _check_again(instance: Any, using: str | None) -> None:
    _send_after_commit(using, EndAuthSession(str(instance.pk), ""))


def _send_after_commit(using: str | None, message: EndAuthSession) -> None:
    if not _in_use():
        return
    work = partial(_send, message)
    if transactions.in_transaction(using):
        transactions.after_commit(work, "realtime.logins", using)
    else:
        work()


def _send(message: EndAuthSession) -> None:
    try:
        serving.call(lambda member: member.send_control(message))
    except NotServing:
        pass  # this process has no clients and reaches no other process
    except Exception:  # the logout itself must not fail
        logger.exception("Could not close the connections of an ended login")
