"""The chat's page, and what tests do to users and sessions inside a server process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.contrib.auth import SESSION_KEY, alogout, get_user_model
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt, ensure_csrf_cookie

User: Any = get_user_model()


@ensure_csrf_cookie
@login_required
def page(request: HttpRequest) -> HttpResponse:
    """A page that connects as whoever is logged in."""
    return render(request, "chat/page.html", {"channel": request.GET.get("channel", "")})


@csrf_exempt
async def async_logout(request: HttpRequest) -> HttpResponse:
    """Log out in an asynchronous view."""
    await alogout(request)
    return HttpResponse(status=204)


def who(request: HttpRequest) -> JsonResponse:
    """Who Django says the visitor is."""
    return JsonResponse({"user": request.user.get_username()})


def touch(request: HttpRequest) -> HttpResponse:
    """Change the session."""
    request.session["touched"] = request.session.get("touched", 0) + 1
    return HttpResponse(status=204)


@csrf_exempt
def do(request: HttpRequest, action: str) -> JsonResponse:
    """Do something to users or sessions; the body is a JSON object of arguments."""
    return JsonResponse({"result": ACTIONS[action](**json.loads(request.body))})


def create(username: str, password: str, groups: list[str], **fields: Any) -> int:
    """Create a user who is a member of these groups; returns the primary key."""
    user = User.objects.create_user(username, password=password, **fields)
    user.groups.add(*[Group.objects.get_or_create(name=name)[0] for name in groups])
    return int(user.pk)


def change_password(username: str) -> None:
    """As the admin does it, for somebody else."""
    user = User.objects.get(username=username)
    user.set_password("another one")
    user.save()


def deactivate(username: str, rolled_back: bool = False) -> None:
    """Take the right to log in away, or nearly."""
    with transaction.atomic():
        user = User.objects.get(username=username)
        user.is_active = False
        user.save()
        transaction.set_rollback(rolled_back)


def deactivate_by_query(username: str) -> None:
    """As `deactivate`, in a way that Django announces to nobody."""
    User.objects.filter(username=username).update(is_active=False)


def rename(username: str, first_name: str) -> None:
    """Save a user without a change that concerns logins."""
    user = User.objects.get(username=username)
    user.first_name = first_name
    user.save()


def delete(username: str) -> None:
    """Delete a user."""
    User.objects.get(username=username).delete()


def delete_session(key: str) -> None:
    """Delete one session."""
    Session.objects.get(session_key=key).delete()


def delete_sessions_of(username: str) -> None:
    """Delete all sessions of a user, by one query."""
    user = str(User.objects.get(username=username).pk)
    keys = [
        session.session_key
        for session in Session.objects.all()
        if session.get_decoded().get(SESSION_KEY) == user
    ]
    Session.objects.filter(session_key__in=keys).delete()


def expire_session(key: str) -> None:
    """Let a session expire, in a way that Django announces to nobody."""
    Session.objects.filter(session_key=key).update(expire_date="2020-01-01T00:00:00Z")


ACTIONS: dict[str, Callable[..., Any]] = {
    action.__name__: action
    for action in (
        create,
        change_password,
        deactivate,
        deactivate_by_query,
        rename,
        delete,
        delete_session,
        delete_sessions_of,
        expire_session,
    )
}
