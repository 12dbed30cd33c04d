"""What hooks are told, and how long the site took to answer."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser, User
from django.db import models
from django.test.utils import isolate_apps
from pytest_django import Settings

from realtime import hooks
from realtime.config.options import ChannelOptions
from realtime.config.reader import read
from realtime.errors import Error, PermissionDenied
from realtime.hooks.registry import Registry
from realtime.hooks.requests import ConnectRequest, Request, SubscribeRequest
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import NO_HANDSHAKE, Caller, Handshake, KeyChange
from realtime.payload import check


def test_credentials_are_not_shown() -> None:
    handshake = Handshake({"cookie": "sessionid=secret", "authorization": "Bearer secret"})
    asked = SubscribeRequest(
        client="C", user="17", handshake=handshake, channel="room:1", token="secret"
    )
    connecting = ConnectRequest(client="C", user="", handshake=handshake, data={"key": "secret"})
    assert "secret" not in f"{asked!r} {connecting!r} {handshake!r}"
    assert "room:1" in repr(asked)


@pytest.mark.django_db
@pytest.mark.parametrize("active", [True, False])
def test_user_who_is_not_active_is_nobody(active: bool) -> None:
    user = User.objects.create_user("ann", is_active=active)
    request = Request(client="C", user=str(user.pk), handshake=Handshake())
    assert request.get_user().is_authenticated is active


@pytest.mark.django_db
def test_django_user_is_read_once_and_when_it_is_used(django_assert_num_queries: Any) -> None:
    user = User.objects.create_user("ann")
    request = Request(client="C", user=str(user.pk), handshake=Handshake())
    with django_assert_num_queries(0):
        found = request.django_user
    with django_assert_num_queries(1):
        assert found == user
        assert request.django_user.get_username() == "ann"
    assert not Request(client="C", user="", handshake=Handshake()).django_user.is_authenticated


async def test_user_of_an_anonymous_client_is_found_in_a_coroutine() -> None:
    request = Request(client="C", user="", handshake=Handshake())
    assert not (await request.aget_user()).is_authenticated
    assert not request.django_user.is_authenticated


@pytest.fixture
def uuid_users(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site whose users have UUIDs for primary keys."""
    with isolate_apps("django.contrib.auth"):

        class Member(AbstractBaseUser):
            id = models.UUIDField(primary_key=True)
            USERNAME_FIELD = "id"

            class Meta:
                app_label = "auth"

    monkeypatch.setitem(apps.all_models["auth"], "member", Member)
    settings.AUTH_USER_MODEL = "auth.Member"


@pytest.mark.parametrize("user", ["", "device-17", "17", "\0"])
def test_id_that_no_user_of_the_site_can_have_is_nobody(uuid_users: None, user: str) -> None:
    request = Request(client="C", user=user, handshake=Handshake())
    assert not request.get_user().is_authenticated


CALLER = Caller("C", "17", NO_HANDSHAKE)


def refuse(*_: Any) -> None:
    raise PermissionDenied


async def test_hook_of_maps_gets_key_and_data() -> None:
    asked: list[tuple[Any, ...]] = []

    def hook(request: hooks.MapPutRequest) -> Any:
        asked.append((request.key, request.data, request.removed, request.params))
        return None if request.removed else hooks.Put(f"{request.user}:{request.key}")

    registry = Registry()
    registry.add_pattern(registry.map_put, "lobby:{pk}", hook)
    site = SiteHooks(read({})[0], registry)
    put = KeyChange("k", check(b'{"n":1}'))
    assert await site.put(CALLER, "lobby:7", ChannelOptions(), put) == KeyChange("17:k", put.data)
    removal = KeyChange("k")
    assert await site.put(CALLER, "lobby:7", ChannelOptions(), removal) == removal
    assert asked == [("k", {"n": 1}, False, {"pk": "7"}), ("k", None, True, {"pk": "7"})]
    await site.close()


async def test_each_answer_is_counted_also_a_refusal() -> None:
    registry = Registry()
    registry.methods["refused"] = refuse
    registry.methods["answered"] = lambda request: {}
    registry.add_pattern(registry.subscribe, "*", lambda request: None)
    registry.add_single("message", lambda request: None)
    site = SiteHooks(read({})[0], registry)

    with pytest.raises(Error):
        await site.rpc(CALLER, "refused", b"")
    await site.rpc(CALLER, "answered", b"")
    await site.subscribe(CALLER, "news", "")
    await site.message(CALLER, b"{}")

    counts = {kind: sum(each.buckets) for kind, each in site.seconds.items()}
    assert counts == {
        "connect": 0,
        "refresh": 0,
        "subscribe": 1,
        "publish": 0,
        "map_put": 0,
        "rpc": 2,
        "message": 1,
    }
    await site.close()
