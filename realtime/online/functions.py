"""Who is online, as plain functions for Django code.

Each has an async version, whose name begins with "a". All of them raise what the functions of
`realtime` raise: EngineUnavailable when the engine is away, NotServing with the memory engine in a
process that serves no clients, and RuntimeError where a sync function is called on an event loop.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet

from realtime.cluster.member import Member
from realtime.engine.lists import Kind, is_listable
from realtime.hooks.site_values import user_id
from realtime.online import querysets
from realtime.online.app import SEEN
from realtime.protocol.messages import UserID
from realtime.serving import serving


def users() -> QuerySet[Any]:
    """Return the users of the site who are online now, at any process, as a QuerySet."""
    ids = serving.call(lambda member: member.lists.names(Kind.USERS), async_name="online.ausers")
    return querysets.with_ids(ids)


async def ausers() -> QuerySet[Any]:
    """Return the users of the site who are online now. Async version of `users`."""
    return querysets.with_ids(await serving.acall(lambda member: member.lists.names(Kind.USERS)))


def among(queryset: QuerySet[Any]) -> QuerySet[Any]:
    """Return those users of a QuerySet who are online now, as a QuerySet.

    The primary keys of the QuerySet are read at once.

    Args:
        queryset: of users of the site; not a slice.

    Raises:
        TypeError: it is of another model, or a slice.
    """
    keys = list(_keys(queryset))
    names = [str(key) for key in keys]
    flags = serving.call(
        lambda member: member.lists.listed(Kind.USERS, names), async_name="online.aamong"
    )
    return _those(queryset, keys, flags)


async def aamong(queryset: QuerySet[Any]) -> QuerySet[Any]:
    """Return those users of a QuerySet who are online now. Async version of `among`."""
    keys = [key async for key in _keys(queryset)]
    names = [str(key) for key in keys]
    flags = await serving.acall(lambda member: member.lists.listed(Kind.USERS, names))
    return _those(queryset, keys, flags)


def _keys(queryset: QuerySet[Any]) -> QuerySet[Any]:
    model = get_user_model()
    if not issubclass(queryset.model, model._meta.concrete_model or model):
        raise TypeError(f"a QuerySet of users expected, not of {queryset.model.__name__}")
    return queryset.order_by().values_list("pk", flat=True)


def _those(queryset: QuerySet[Any], keys: list[Any], flags: list[bool]) -> QuerySet[Any]:
    online = [key for key, is_listed in zip(keys, flags, strict=True) if is_listed]
    return querysets.with_keys(queryset, online)


def is_online(user: Any) -> bool:
    """Return whether a user has a connection now, at any process.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.

    Raises:
        TypeError: `user` is neither a user nor an ID.
    """
    name = user_id(user)
    return serving.call(lambda member: _is_online(member, name), async_name="online.ais_online")


async def ais_online(user: Any) -> bool:
    """Return whether a user has a connection now, at any process. Async version of `is_online`."""
    name = user_id(user)
    return await serving.acall(lambda member: _is_online(member, name))


async def _is_online(member: Member, user: UserID) -> bool:
    return is_listable(user) and (await member.lists.listed(Kind.USERS, [user]))[0]


def last_seen(user: Any) -> datetime | None:
    """Return when a user was online last, in UTC: now, if the user is online.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.

    Returns:
        None if that is not known.

    Raises:
        ImproperlyConfigured: the app "realtime.online.seen" is not installed.
        TypeError: `user` is neither a user nor an ID.
    """
    name = _seen_name(user)
    found = serving.call(lambda member: _seen(member, name), async_name="online.alast_seen")
    return found or _stored().find(name)


async def alast_seen(user: Any) -> datetime | None:
    """Return when a user was online last, in UTC. Async version of `last_seen`."""
    name = _seen_name(user)
    found = await serving.acall(lambda member: _seen(member, name))
    return found or await _stored().afind(name)


def _seen_name(user: Any) -> UserID:
    name = user_id(user)
    _stored()
    return name


def _stored() -> Any:
    """Return the module of the model.

    Raises:
        ImproperlyConfigured: the app is not installed.
    """
    if not apps.is_installed(SEEN):
        raise ImproperlyConfigured(
            f'last_seen needs the app: add "{SEEN}" to INSTALLED_APPS, and migrate.'
        )
    from realtime.online.seen import models

    return models


async def _seen(member: Member, user: UserID) -> datetime | None:
    """Return when a user was online last, as far as the nodes know."""
    if await _is_online(member, user):
        return datetime.now(UTC)
    at = await member.seen.at(user) if member.seen is not None and is_listable(user) else None
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC)
