"""A login that ends while its client is being identified: real sessions, in the database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from pytest_django import Settings

from realtime.config.reader import read
from realtime.errors import Disconnect, InternalError
from realtime.hooks import login
from realtime.hooks.login import Logins, digest
from realtime.hooks.registry import Registry
from realtime.hooks.runner import Runner
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import Caller, Handshake, Identity

pytestmark = pytest.mark.django_db(transaction=True)

ELSEWHERE = "https://elsewhere.example"


class Site:
    """A site with one user who is logged in, and what identifies its clients."""

    def __init__(self) -> None:
        self.runner = Runner(4, timeout=10)
        self.registry = Registry()
        self.logins = Logins(self.runner, self.registry, None, 4)
        self.described = 0
        """How often the info hook was asked."""
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens, once, while the client is being identified."""
        self._loop = asyncio.get_running_loop()
        self.registry.add_single("info", self._info)
        self.user = ""
        self.key = ""

    async def log_in(self) -> None:
        """Make the user, and the session."""

        def log_in() -> tuple[str, str]:
            user = User.objects.create_user("ann", password="x")
            session = import_module(settings.SESSION_ENGINE).SessionStore()
            session[SESSION_KEY] = str(user.pk)
            session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
            session[HASH_SESSION_KEY] = user.get_session_auth_hash()
            session.save()
            return str(user.pk), session.session_key

        self.user, self.key = await self.runner.run(log_in)

    def caller(self, user: str = "", **headers: str) -> Caller:
        """A client with the session's cookie."""
        cookie = f"{settings.SESSION_COOKIE_NAME}={self.key}"
        return Caller("C", user, Handshake({"cookie": cookie} | headers, "site.example"))

    def ended(self, login: str) -> None:
        """Say from any thread that a login ended, and wait until it is said."""

        async def say() -> None:
            self.logins.ended(self.user, login)

        asyncio.run_coroutine_threadsafe(say(), self._loop).result(10)

    def _info(self, user: User) -> dict[str, str]:
        self.described += 1
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return {"name": user.get_username()}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A site with one user who is logged in."""
    made = Site()
    await made.log_in()
    yield made
    await made.runner.close()


async def test_client_is_identified(site: Site) -> None:
    identity = await site.logins.identify(site.caller())
    assert identity is not None
    assert (identity.user, identity.auth_session) == (site.user, digest(site.key))
    assert site.key not in identity.auth_session


async def test_user_deactivated_while_its_client_is_identified_is_not_let_in(site: Site) -> None:
    def deactivate() -> None:
        User.objects.filter(pk=site.user).update(is_active=False)
        site.ended("")

    site.meanwhile = deactivate

    assert await site.logins.identify(site.caller()) is None


async def test_clients_that_are_identified_meanwhile_hide_no_change_from_another(
    site: Site,
) -> None:
    def another() -> Future[Identity | None]:
        return asyncio.run_coroutine_threadsafe(site.logins.identify(site.caller()), site._loop)

    def deactivate() -> None:
        assert another().result(10) is not None
        User.objects.filter(pk=site.user).update(is_active=False)
        site.ended("")
        later.append(another())

    later: list[Future[Identity | None]] = []
    site.meanwhile = deactivate

    assert await site.logins.identify(site.caller()) is None

    assert await asyncio.wrap_future(later[0]) is None
    assert not site.logins._identifying


async def test_user_changed_while_its_client_is_identified_is_read_again(site: Site) -> None:
    site.meanwhile = lambda: site.ended("")
    assert await site.logins.identify(site.caller()) is not None
    assert site.described == 2


async def test_change_of_another_user_is_no_reason_to_read_again(site: Site) -> None:
    async def change() -> None:
        site.logins.ended("other", "")

    def meanwhile() -> None:
        asyncio.run_coroutine_threadsafe(change(), site._loop).result(10)

    site.meanwhile = meanwhile

    assert await site.logins.identify(site.caller()) is not None

    assert site.described == 1


async def test_session_logged_out_while_its_client_is_identified_is_not_let_in(site: Site) -> None:
    """Django says so before it removes the session, so reading it again would not help."""
    site.meanwhile = lambda: site.ended(digest(site.key))
    assert await site.logins.identify(site.caller()) is None


async def test_session_logged_out_a_moment_ago_is_refused_though_it_can_still_be_read(
    site: Site,
) -> None:
    site.logins.ended(site.user, digest(site.key))
    assert await site.logins.identify(site.caller()) is None


async def test_logout_of_another_session_refuses_nobody(site: Site) -> None:
    site.logins.ended(site.user, digest("another"))
    assert await site.logins.identify(site.caller()) is not None


async def test_ended_logins_are_forgotten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from realtime.hooks import login

    monkeypatch.setattr(login, "ENDED_LIFETIME", 0.0)
    for number in range(100):
        site.logins.ended(site.user, str(number))
    assert len(site.logins._ended) == 1


# looking again


async def test_renewal_of_a_session_of_another_user_is_refused(site: Site) -> None:
    login = digest(site.key)
    assert await site.logins.refresh(site.caller(site.user), login) is not None
    assert await site.logins.refresh(site.caller("0"), login) is None
    assert await site.logins.refresh(site.caller(site.user), digest("another")) is None


async def test_looking_at_a_session_never_ends_it(site: Site) -> None:
    """Its browser could not be told: only a response of Django sets a cookie."""

    def change() -> None:
        user = User.objects.get(pk=site.user)
        user.set_password("another")
        user.save()

    await site.runner.run(change)

    assert await site.logins.identify(site.caller()) is None
    assert await site.runner.run(Session.objects.filter(session_key=site.key).count) == 1


async def test_session_of_a_secret_that_was_replaced_is_believed_and_left_as_it_is(
    site: Site, settings: Settings
) -> None:
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "a new one"
    assert await site.logins.identify(site.caller()) is not None
    assert await site.runner.run(Session.objects.filter(session_key=site.key).count) == 1


async def test_info_may_be_a_coroutine(site: Site) -> None:
    async def info(user: User) -> dict[str, int]:
        return {"users": await User.objects.filter(pk=user.pk).acount()}

    site.registry.add_single("info", info)

    identity = await site.logins.identify(site.caller())

    assert identity is not None
    assert identity.info is not None
    assert identity.info.raw == b'{"users":1}'


@pytest.mark.parametrize(
    ("error", "raised"),
    [(Disconnect(4001, "no"), Disconnect), (ValueError(), InternalError)],
    ids=["refused", "failed"],
)
async def test_info_hook_may_refuse_or_fail(
    site: Site, error: Exception, raised: type[Exception]
) -> None:
    def info(user: Any) -> None:
        raise error

    site.registry.add_single("info", info)

    with pytest.raises(raised):
        await site.logins.identify(site.caller())


async def test_page_of_another_origin_is_refused_before_anything_is_read(site: Site) -> None:
    assert await site.logins.identify(site.caller(origin=ELSEWHERE)) is None
    assert site.described == 0
    assert await site.logins.identify(site.caller(origin="https://site.example")) is not None


WORKERS = 2


async def test_login_that_ended_ends_while_slow_hooks_are_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, busy = threading.Event(), threading.Semaphore(0)

    def slow(request: Any) -> None:
        busy.release()
        release.wait(10)

    registry = Registry()
    registry.methods["slow"] = slow
    monkeypatch.setattr(login, "_load", lambda key: None)  # the user is not active any more
    options = {"session_authentication": True, "hook_workers": WORKERS, "hook_timeout": 2.0}
    hooks = SiteHooks(read(options)[0], registry)
    caller = Caller("C", "17", Handshake({"cookie": "sessionid=of-user-17"}, "site.example"))
    calls = [asyncio.create_task(hooks.rpc(caller, "slow", b"")) for _ in range(WORKERS)]
    for _ in calls:
        assert await asyncio.to_thread(busy.acquire, timeout=10)

    try:
        assert await hooks.refresh(caller, "login") is None
        assert await hooks.connect(caller, b"", "", "") is None
    finally:
        release.set()
        await asyncio.gather(*calls, return_exceptions=True)
        await hooks.close()
