"""Pages with something of their visitor: no cache gives them to another one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template import engines
from django.template.response import TemplateResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.cache import cache_control, cache_page
from django.views.decorators.vary import vary_on_headers

from realtime.transports.asgi import Receive, Scope, Send
from realtime.transports.private_pages import with_privacy
from tests.unit.pages import site
from tests.unit.pages.parts import MIDDLEWARE, OPTIONS

TAGS = (
    "realtime_token",
    "realtime_config",
    'realtime_config token="of.this.visitor"',
    'realtime_inspector "auth.view_user"',
    'realtime_channel "$orders:42" token=True',
    'realtime_channels "$orders:42" token=True',
    'live "$orders:42" token=True %}{% endlive',
)
"""All that write something of the visitor."""
OPEN = (
    'realtime_config token=""',
    "realtime_importmap",
    'realtime_channel "orders:42"',
    'realtime_since "orders:42"',
    'live "orders:42" %}{% endlive',
)
"""Those that write the same for everybody."""

WITHOUT = MIDDLEWARE[:-1]
EVERYWHERE = [
    "django.middleware.cache.UpdateCacheMiddleware",
    *MIDDLEWARE,
    "django.middleware.cache.FetchFromCacheMiddleware",
]
FIRST = [
    "realtime.pages.middleware.PositionMiddleware",
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
    *WITHOUT,
]


def text_of(request: HttpRequest) -> str:
    return f"{{% load realtime realtime_live %}}{{% {request.GET['tag']} %}}"


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{request.user} {site.render(request, text_of(request))}")


def later(request: HttpRequest) -> HttpResponse:
    text = f"{{{{ request.user }}}} {text_of(request)}"
    return TemplateResponse(request, engines["django"].from_string(text))


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    def chunks() -> Any:
        yield site.render(request, text_of(request))

    return StreamingHttpResponse(chunks())


urlpatterns = [
    path("page", page),
    path("cached", cache_page(60)(page)),
    path("later", cache_page(60)(later)),
    path("public", cache_control(public=True, max_age=60)(vary_on_headers("Accept")(page))),
    path("streamed", streamed),
]


@pytest.fixture(autouse=True)
def tokens(service: object) -> Iterator[None]:
    """A site whose clients have tokens. It takes the place of the other site."""
    options = OPTIONS | {"session_authentication": False}
    with override_settings(ROOT_URLCONF=__name__, REALTIME=options):
        yield


@pytest.fixture
def visitor(db: None) -> Client:
    user = User.objects.create(username="Ann")
    user.user_permissions.add(Permission.objects.get(codename="view_user"))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("where", ["cached", "later", "page"])
@pytest.mark.parametrize(
    ("middleware", "tag"),
    [
        *product((MIDDLEWARE, EVERYWHERE, FIRST), TAGS),
        *product((WITHOUT,), TAGS[:4]),  # the others need it for positions
    ],
)
def test_nobody_gets_the_page_of_another_visitor(
    visitor: Client, where: str, middleware: list[str], tag: str
) -> None:
    with override_settings(MIDDLEWARE=middleware):
        mine = visitor.get(f"/{where}", {"tag": tag})
        theirs = Client().get(f"/{where}", {"tag": tag})

    assert mine.text.startswith("Ann")
    assert theirs.text.startswith("AnonymousUser")
    if middleware is not WITHOUT:  # nothing sees the response
        for response in (mine, theirs):
            assert "private" in response.headers["Cache-Control"]
            assert "max-age" not in response.headers["Cache-Control"]
            assert "Cookie" in response.headers["Vary"]


@pytest.mark.parametrize("tag", OPEN)
def test_page_without_anything_of_a_visitor_is_cached(tag: str) -> None:
    with override_settings(REALTIME=OPTIONS):
        first = Client().get("/cached", {"tag": tag})
        again = Client().get("/cached", {"tag": tag})
    assert "private" not in first.headers["Cache-Control"]
    assert again.headers["Expires"] == first.headers["Expires"]


@pytest.mark.parametrize("tag", ["realtime_token", "realtime_config"])
def test_streamed_page_cannot_have_a_token(tag: str) -> None:
    response = Client().get("/streamed", {"tag": tag})
    with pytest.raises(ImproperlyConfigured, match="not streamed"):
        response.getvalue()


async def served(where: str, tag: str) -> dict[str, str]:
    """The headers of a page in a site without the middleware, as the ASGI application sends it."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        scope, send = with_privacy(scope, send)
        await ASGIHandler()(scope, receive, send)

    query = f"tag={tag}".replace(" ", "+").encode()
    scope = {"type": "http", "method": "GET", "path": f"/{where}", "query_string": query}
    scope["headers"] = [(b"host", b"testserver")]
    with override_settings(MIDDLEWARE=WITHOUT):
        site = ApplicationCommunicator(application, scope)
        await site.send_input({"type": "http.request"})
        head = await site.receive_output(20)
        await site.receive_output(20)
        await site.wait(20)
    assert head["status"] == 200
    return {name.decode().lower(): value.decode() for name, value in head["headers"]}


@pytest.mark.parametrize("tag", ["realtime_token", "realtime_config"])
async def test_application_says_it_where_there_is_no_middleware(tag: str) -> None:
    headers = await served("page", tag)
    public = await served("public", tag)
    assert (headers["cache-control"], headers["vary"]) == ("private", "Cookie")
    assert public["cache-control"] == "max-age=60, private"
    assert public["vary"] == "Accept, Cookie"


async def test_application_leaves_other_pages_alone() -> None:
    headers = await served("public", "realtime_importmap")
    assert headers["cache-control"] == "public, max-age=60"
