"""What `realtime.asgi.application` needs of a site."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIHandler
from django.test import modify_settings

from realtime.asgi import application
from realtime.serving import serving
from realtime.transports.asgi import ASGIApplication, Event, Receive, Scope, Send

TIMEOUT = 60.0
"""Seconds; a communicator waits for one unless told otherwise."""


def test_site_without_the_app_is_not_served() -> None:
    with (
        modify_settings(INSTALLED_APPS={"remove": "realtime"}),
        pytest.raises(ImproperlyConfigured, match="INSTALLED_APPS"),
    ):
        application(AsyncMock())


@pytest.fixture
async def served() -> AsyncIterator[None]:
    """The service of this process ends after the test."""
    yield
    await serving.stop()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """A WebSocket consumer, or an application for lifespan events, that confirms each event."""
    answers = {
        "websocket.connect": "websocket.accept",
        "lifespan.startup": "lifespan.startup.complete",
        "lifespan.shutdown": "lifespan.shutdown.complete",
    }
    while (event := await receive())["type"] in answers:
        await send({"type": answers[event["type"]]})
        if event["type"] == "lifespan.shutdown":
            return


def middleware(inner: ASGIApplication) -> ASGIApplication:
    """An application around another one that says no more about it."""

    async def around(scope: Scope, receive: Receive, send: Send) -> None:
        await inner({**scope, "seen": True}, receive, send)

    return around


async def branch(scope: Scope, receive: Receive, send: Send) -> None:
    """A site's router of its own."""
    if scope["type"] == "websocket":
        await echo(scope, receive, send)


SITES = {
    "router": ProtocolTypeRouter({"http": echo, "websocket": echo}),
    "middleware around a router": middleware(ProtocolTypeRouter({"websocket": echo})),
    "middleware of two layers": middleware(middleware(ProtocolTypeRouter({"websocket": echo}))),
    "router of its own": branch,
}


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("site", SITES.values(), ids=list(SITES))
async def test_websockets_of_the_site_keep_working(site: ASGIApplication) -> None:
    assert (await first_event(application(site), "/own"))["type"] == "websocket.accept"


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    "site",
    [
        ASGIHandler(),
        middleware(ASGIHandler()),
        ProtocolTypeRouter({"http": ASGIHandler()}),
        middleware(ProtocolTypeRouter({"http": ASGIHandler()})),
        ProtocolTypeRouter({"websocket": URLRouter([])}),
    ],
    ids=["Django", "middleware", "router", "middleware around a router", "router of paths"],
)
async def test_site_without_websockets_refuses_them(site: ASGIApplication) -> None:
    event = await first_event(application(site), "/own")
    assert event == {"type": "websocket.close", "code": 1000}


async def test_client_that_waits_for_the_start_is_closed_when_the_server_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """daphne cancels its applications."""
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(serving, "start", hang)
    received: asyncio.Queue[Event] = asyncio.Queue()
    received.put_nowait({"type": "websocket.connect"})
    sent: list[Event] = []

    async def send(event: Event) -> None:
        sent.append(event)
        if event["type"] == "websocket.close":
            received.put_nowait({"type": "websocket.disconnect", "code": 3001})

    scope = {"type": "websocket", "path": "/connection/websocket", "headers": []}
    serve = asyncio.ensure_future(application(ASGIHandler())(scope, received.get, send))
    await begun.wait()
    serve.cancel()
    await serve

    assert [event["type"] for event in sent] == ["websocket.accept", "websocket.close"]
    assert (sent[1]["code"], sent[1]["reason"]) == (3001, '{"reason":"shutdown","reconnect":true}')


@pytest.mark.usefixtures("served")
async def test_failure_of_the_site_is_not_hidden() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("a fault of the site")

    with pytest.raises(ValueError, match="a fault of the site"):
        await (await opened(application(broken), "/own")).wait(TIMEOUT)


async def opened(served: ASGIApplication, path: str) -> ApplicationCommunicator:
    """Open a WebSocket."""
    scope = {"type": "websocket", "path": path, "headers": [], "subprotocols": []}
    communicator = ApplicationCommunicator(served, scope)
    await communicator.send_input({"type": "websocket.connect"})
    return communicator


async def first_event(served: ASGIApplication, path: str) -> dict[str, Any]:
    """Open a WebSocket and return the first event of the application."""
    communicator = await opened(served, path)
    event: dict[str, Any] = await communicator.receive_output(TIMEOUT)
    await communicator.send_input({"type": "websocket.disconnect", "code": 1000})
    await communicator.wait(TIMEOUT)
    return event


LIFESPANS = {
    "router": ProtocolTypeRouter({"lifespan": echo}),
    "middleware": middleware(ProtocolTypeRouter({"lifespan": echo})),
    "router without lifespan": ProtocolTypeRouter({"http": ASGIHandler()}),
    "middleware around Django": middleware(ASGIHandler()),
    "ignored": branch,
}


@pytest.mark.parametrize("site", LIFESPANS.values(), ids=list(LIFESPANS))
async def test_lifespan_of_service_and_site_go_together(site: ASGIApplication) -> None:
    seen: list[str] = []

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        async def watched_receive() -> Event:
            event = await receive()
            seen.append(f"{event['type']}: {'served' if serving.node() else 'not served'}")
            return event

        await site(scope, watched_receive, send)

    communicator = ApplicationCommunicator(application(watched), {"type": "lifespan"})
    for step in ("startup", "shutdown"):
        await communicator.send_input({"type": f"lifespan.{step}"})
        assert await communicator.receive_output(TIMEOUT) == {"type": f"lifespan.{step}.complete"}
    await communicator.wait(TIMEOUT)

    assert serving.node() is None
    assert seen in ([], ["lifespan.startup: served", "lifespan.shutdown: not served"])
    assert bool(seen) == (site in (LIFESPANS["router"], LIFESPANS["middleware"]))


@pytest.mark.usefixtures("served")
async def test_service_stops_although_the_site_failed_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        raise OSError("no database")

    communicator = ApplicationCommunicator(application(fail), {"type": "lifespan"})
    for step in ("startup", "shutdown"):
        await communicator.send_input({"type": f"lifespan.{step}"})
        assert await communicator.receive_output(TIMEOUT) == {"type": f"lifespan.{step}.complete"}
        assert (serving.node() is not None) == (step == "startup")
    await communicator.wait(TIMEOUT)
    assert "no database" in caplog.text


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("kind", "event"), [("websocket", "websocket.connect"), ("lifespan", "lifespan.startup")]
)
async def test_django_itself_is_asked_for_http_only(
    monkeypatch: pytest.MonkeyPatch, kind: str, event: str
) -> None:
    """Tools that report errors patch its handler, and would report each WebSocket of a stranger."""
    asked = AsyncMock()
    monkeypatch.setattr(ASGIHandler, "__call__", asked)
    scope = {"type": kind, "path": "/elsewhere", "headers": [], "extensions": {}}
    communicator = ApplicationCommunicator(application(ASGIHandler()), scope)
    await communicator.send_input({"type": event})
    await communicator.receive_output(TIMEOUT)
    assert not asked.called
