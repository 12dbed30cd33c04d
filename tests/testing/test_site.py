"""Functions of the site and its logins: the kit lets them see what the test wrote."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.db import connection, connections, transaction
from django.test import TestCase, TransactionTestCase, override_settings

import realtime
from realtime import hooks, signals
from realtime.errors import Disconnect, DisconnectBadRequest, Error, PermissionDenied
from realtime.testing import RealtimeTestMixin, TestService, capture
from tests.testing.conftest import OPTIONS

pytestmark = pytest.mark.usefixtures("site")

LOGINS = {**OPTIONS, "session_authentication": True}


def register_hooks() -> None:
    """What the module `realtime.py` of an app does."""

    @hooks.subscribe("group:*")
    @hooks.subscribe("chat:{name}")
    def may_subscribe(request: hooks.SubscribeRequest) -> Any:
        return request.get_user().groups.filter(name=request.params["name"]).exists()

    @hooks.rpc
    def create(request: hooks.RPCRequest) -> Any:
        with transaction.atomic():
            group = Group.objects.create(name=request.data)
            realtime.publish("news", {"created": group.name})
        return {"thread": threading.current_thread() is threading.main_thread()}

    @hooks.rpc
    async def count(request: hooks.RPCRequest) -> int:
        return await Group.objects.acount()

    @hooks.rpc
    def refuse(request: hooks.RPCRequest) -> None:
        raise Error(1001, "not today")

    @hooks.rpc
    def throw_out(request: hooks.RPCRequest) -> None:
        raise Disconnect(4001, "enough")


class Site:
    """What must hold in every kind of test case."""

    realtime_outbox: Any
    realtime_client: Any
    client: Any
    addCleanup: Any  # noqa: N815, unittest's name

    def setUp(self) -> None:
        register_hooks()
        super().setUp()  # type: ignore[misc]  # of the test case beside it
        self.user = get_user_model().objects.create_user("alice")
        self.user.groups.add(Group.objects.create(name="staff"))

    def test_hook_sees_what_the_test_wrote(self) -> None:
        with self.realtime_client(self.user) as alice:
            alice.subscribe("chat:staff")
            with pytest.raises(PermissionDenied):
                alice.subscribe("chat:others")

    def test_test_sees_what_a_hook_wrote(self) -> None:
        with self.realtime_client(self.user) as alice:
            assert alice.rpc("create", "new") == {"thread": False}
        assert Group.objects.filter(name="new").exists()

    def test_hook_publishes_after_its_transaction(self) -> None:
        with self.realtime_client(self.user) as alice:
            alice.subscribe("news")
            alice.rpc("create", "new")
            alice.expect("news", {"created": "new"})
        assert self.realtime_outbox == [("news", {"created": "new"})]

    def test_asynchronous_hook_sees_what_the_test_wrote(self) -> None:
        with self.realtime_client(self.user) as alice:
            assert alice.rpc("count") == 1

    async def test_hooks_see_what_an_asynchronous_test_wrote(self) -> None:
        await Group.objects.acreate(name="more")
        async with self.realtime_client(self.user) as alice:
            assert await alice.arpc("count") == 2
            await alice.arpc("create", "new")
        assert await Group.objects.acount() == 3

    def test_hook_refuses_in_its_own_words(self) -> None:
        with self.realtime_client(self.user) as alice, pytest.raises(Error) as error:
            alice.rpc("refuse")
        assert (error.value.code, error.value.message) == (1001, "not today")

    def test_hook_disconnects_in_its_own_words(self) -> None:
        alice = self.realtime_client(self.user).connect()
        with pytest.raises(Disconnect) as disconnect:
            alice.rpc("throw_out")
        assert (disconnect.value.code, disconnect.value.reason) == (4001, "enough")
        assert not alice.closed(4001).reconnect

    def test_receiver_of_a_signal_was_called_for_the_client(self) -> None:
        def remember(user: str, channel: str, **_: Any) -> None:
            Group.objects.create(name=f"{get_user_model().objects.get(pk=user)} in {channel}")
            realtime.publish("news", user)

        signals.subscribed.connect(remember)
        self.addCleanup(signals.subscribed.disconnect, remember)
        with self.realtime_client(self.user) as alice:
            alice.subscribe("chat:staff")
            assert Group.objects.filter(name="alice in chat:staff").exists()
        assert self.realtime_outbox.data("news") == [str(self.user.pk)]

    # logins

    def test_client_with_the_cookies_of_a_login_is_the_user(self) -> None:
        self.client.force_login(self.user)
        with self.realtime_client(cookies=self.client.cookies) as alice:
            alice.subscribe("news")
            assert realtime.presence("news")[alice.id]["user"] == str(self.user.pk)

    def test_cookies_without_a_session_are_refused(self) -> None:
        with pytest.raises(DisconnectBadRequest):
            self.realtime_client(cookies={"sessionid": "nonsense"}).connect()

    def test_logout_closes_the_connection(self) -> None:
        self.client.force_login(self.user)
        alice = self.realtime_client(cookies=self.client.cookies).connect()
        self.client.logout()
        alice.closed(3012)
        with pytest.raises(DisconnectBadRequest):
            alice.resume()

    def test_deleted_session_closes_the_connection(self) -> None:
        self.client.force_login(self.user)
        alice = self.realtime_client(cookies=self.client.cookies).connect()
        Session.objects.all()[0].delete()
        alice.closed()

    def test_user_who_may_not_log_in_any_more_is_closed_with_3005(self) -> None:
        self.client.force_login(self.user)
        alice = self.realtime_client(cookies=self.client.cookies).connect()
        with transaction.atomic():
            self.user.is_active = False
            self.user.save()
        alice.closed(3005)


@override_settings(REALTIME=LOGINS)
class TestSiteInTestCase(Site, RealtimeTestMixin, TestCase):
    """Nothing of the test is committed."""


@override_settings(REALTIME=LOGINS)
class TestSiteInTransactionTestCase(Site, RealtimeTestMixin, TransactionTestCase):
    """Everything is committed."""


@pytest.mark.django_db
def test_hook_sees_what_a_pytest_test_wrote(settings: Any, django_user_model: Any) -> None:
    settings.REALTIME = OPTIONS
    register_hooks()
    user = django_user_model.objects.create_user("alice")
    user.groups.add(Group.objects.create(name="staff"))
    with TestService() as service, service.client(user) as alice:
        alice.subscribe("chat:staff")


@pytest.mark.django_db(transaction=True)
async def test_hook_sees_what_a_coroutine_wrote(settings: Any, django_user_model: Any) -> None:
    settings.REALTIME = OPTIONS
    register_hooks()
    user = await django_user_model.objects.acreate_user("alice")
    await user.groups.aadd(await Group.objects.acreate(name="staff"))

    async with TestService() as service, service.client(user) as alice:
        await alice.asubscribe("chat:staff")
        with capture() as outbox:
            await alice.arpc("create", "new")

        assert outbox == [("news", {"created": "new"})]
        assert await Group.objects.acount() == 2
    await sync_to_async(connections.close_all)()


@pytest.mark.django_db
def test_connection_of_the_test_is_its_own_again_afterwards(settings: Any) -> None:
    settings.REALTIME = OPTIONS
    register_hooks()
    with TestService() as service, service.client("17") as client:
        client.rpc("count")
        assert connection.allow_thread_sharing
    shared: bool = connection.allow_thread_sharing
    assert not shared
    assert connection.in_atomic_block
    Group.objects.create(name="goes on")
