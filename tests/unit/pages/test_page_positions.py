"""Positions of pages: those that channels had when the request began."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.template import Template
from django.test import AsyncClient, Client, RequestFactory, override_settings
from pytest_django import DjangoAssertNumQueries

import realtime
from realtime.engine.memory import MemoryBroker
from realtime.errors import EngineUnavailable, NamespaceNotFound, NotAvailable
from realtime.pages import page_positions
from realtime.serving import serving
from realtime.testing import TestService
from tests.unit.pages import site
from tests.unit.pages.parts import OPTIONS, elements, publish_before, request_begun


@pytest.mark.parametrize("path", ["page", "apage", "later"])
def test_page_has_the_position_from_before_its_queries(path: str) -> None:
    expected = publish_before()
    found = elements(Client().get(f"/{path}").content)
    assert found == [expected]
    assert realtime.position("orders:42").offset == expected["offset"] + 1


@pytest.mark.parametrize("path", ["page", "apage", "later"])
async def test_page_has_the_position_from_before_its_queries_on_a_loop(path: str) -> None:
    expected = await asyncio.to_thread(publish_before)
    response = await AsyncClient().get(f"/{path}")
    assert elements(response.content) == [expected]


def test_streamed_page_has_the_position_from_before_its_queries() -> None:
    expected = publish_before()
    response = Client().get("/streamed")
    assert elements(response.getvalue()) == [expected, expected]


@pytest.mark.parametrize("at", [0, 1, 5, 20, 60, 100, 150, 200])
def test_element_that_a_stream_cuts_has_its_position(at: int) -> None:
    expected = publish_before()
    response = Client().get("/cut", {"at": at})
    html = response.getvalue()
    assert elements(html) == [expected]
    assert html.startswith(b"<p><script ")
    assert html.endswith(b"</script></p>")


async def test_streamed_page_has_the_position_from_before_its_queries_on_a_loop() -> None:
    expected = await asyncio.to_thread(publish_before)
    response = await AsyncClient().get("/astreamed")
    stream: Any = response
    html = b"".join([chunk async for chunk in stream.streaming_content])
    assert elements(html) == [expected, expected]


def test_cached_page_keeps_the_position_of_its_time() -> None:
    expected = publish_before()
    first, second = (Client().get("/cached") for _ in range(2))
    assert elements(first.content) == elements(second.content) == [expected]
    assert realtime.position("orders:42").offset == expected["offset"] + 1


def test_margin_makes_positions_older() -> None:
    expected = publish_before()
    with override_settings(REALTIME={**OPTIONS, "page_margin": 3600}):
        expected = publish_before()
        found = elements(Client().get("/page").content)
    assert found == [{**expected, "offset": 0}]


@pytest.mark.django_db
def test_page_makes_no_query_and_stays_public(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(0):
        response = Client().get("/page")
    assert "Vary" not in response.headers
    assert "Cache-Control" not in response.headers
    assert not response.cookies
    assert list(elements(response.content)[0]) == ["channel", "offset", "epoch"]


@pytest.mark.parametrize("path", ["page", "later"])
def test_channels_of_a_page_are_read_together(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    read = MemoryBroker.positions

    async def count(self: MemoryBroker, channels: Any, at: int | None = None) -> Any:
        calls.append(list(channels))
        return await read(self, channels, at)

    monkeypatch.setattr(MemoryBroker, "positions", count)
    names = [f"orders:{number}" for number in range(50)]

    response = Client().get("/page", {"text": site.MANY, "name": names})

    assert calls == [[*names, "orders:x"]]
    assert len(elements(response.content)) == 101
    assert all("offset" in each for each in elements(response.content))


def test_channel_cannot_end_the_element() -> None:
    name = 'orders:</script><script>alert("1")//&<!--'
    html = Client().get("/page", {"text": site.MANY, "name": name}).content.decode()
    assert [each["channel"] for each in elements(html)] == [name, "orders:x", name]
    assert html.count("<script") == html.count("</script>") == 3
    assert "<!--" not in html


def forged(**values: Any) -> str:
    return f'<script type="application/json" data-realtime-channel>{json.dumps(values)}</script>'


def element_of_the_tag() -> dict[str, Any]:
    """Return an element as the tag writes it, before the middleware completes it."""
    (found,) = elements(Client().get("/plain").content)
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {"channel": "orders:7"},
        {"at": 2**60},
        {"at": 10**400},
        {"signature": ""},
        {"signature": "\ud800"},
        {"signature": None},
        {"channel": "orders:\ud800"},
    ],
    ids=lambda changes: "-".join(changes),
)
@pytest.mark.parametrize("path", ["page", "streamed"])
def test_element_that_a_user_wrote_is_not_completed(path: str, changes: dict[str, Any]) -> None:
    publish_before("orders:7")
    text = forged(**element_of_the_tag() | changes)
    response = Client().get(f"/{path}", {"text": text + site.TAG})
    found = elements(response.getvalue())
    assert "offset" not in found[0]
    assert "offset" in found[1]


def test_element_that_is_nested_too_deeply_is_left_alone() -> None:
    text = forged(a=1).replace("1", 5_000 * '{"a":' + "1" + 5_000 * "}")
    response = Client().post("/page", {"text": text})
    assert response.content == text.encode()


def test_element_of_a_cache_outlives_a_change_of_the_key() -> None:
    text = forged(**element_of_the_tag())
    with override_settings(SECRET_KEY="newer", SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
        kept = elements(Client().get("/page", {"text": text}).content)
    with override_settings(SECRET_KEY="newer"):
        lost = elements(Client().get("/page", {"text": text}).content)
    assert ["offset" in each for each in kept + lost] == [True, False]


def test_name_of_the_type_of_a_page_may_be_in_capitals() -> None:
    expected = publish_before()
    response = Client().get("/page", {"type": "TEXT/HTML"})
    assert elements(response.content) == [expected]


def test_element_has_a_name_for_scripts() -> None:
    text = """{% load realtime %}{% realtime_channel "orders:42" as='"><b>' %}"""
    html = Client().get("/page", {"text": text}).content.decode()
    assert 'data-realtime-channel="&quot;&gt;&lt;b&gt;"' in html
    assert "offset" in elements(html)[0]


def test_name_that_a_visitor_made_up_has_no_position() -> None:
    response = Client().get(
        "/page", {"text": site.MANY, "name": ["orders:ä", "orders:" + 300 * "x"]}
    )
    assert response.status_code == 200
    assert ["offset" in each for each in elements(response.content)] == [
        False, False, True, False, False
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "error"),
    [("plain:1", NotAvailable), ("kept:1", NotAvailable), ("nowhere:1", NamespaceNotFound)],
)
def test_channel_without_recovery_is_a_mistake_of_the_site(
    name: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Client().get("/page", {"text": site.MANY, "name": name})


def test_responses_that_are_no_pages_stay_as_they_are() -> None:
    html = Client().get("/plain").content
    assert [list(each) for each in elements(html)] == [["channel", "at", "signature"]]


def test_page_renders_while_the_engine_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    async def fail(*_: Any) -> Any:
        attempts.append(1)
        raise EngineUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryBroker, "positions", fail)
        pages = [Client().get("/page") for _ in range(3)]

    assert [elements(page.content) for page in pages] == 3 * [[{"channel": "orders:42"}]]
    assert len(attempts) == 1  # the others do not wait for it
    page_positions._reader._retry_at = 0
    assert "offset" in elements(Client().get("/page").content)[0]


# tokens


def test_page_with_a_token_is_private() -> None:
    response = Client().get("/page", {"text": site.TOKEN})
    (found,) = elements(response.content)
    assert found["token"].count(".") == 2
    assert "offset" in found
    assert response.headers["Cache-Control"] == "private"
    assert response.headers["Vary"] == "Cookie"


def test_page_with_a_token_is_not_cached_by_the_site() -> None:
    offsets = []
    for _ in range(2):
        publish_before("$orders:42")
        (found,) = elements(Client().get("/cached", {"text": site.TOKEN}).content)
        offsets.append(found["offset"])
    assert offsets == [1, 2]


def test_streamed_page_cannot_have_a_token() -> None:
    response = Client().get("/streamed", {"text": site.TOKEN})
    with pytest.raises(ImproperlyConfigured, match="not streamed"):
        response.getvalue()


@pytest.mark.parametrize(
    ("tag", "written"),
    [
        ("realtime_token", ""),
        ("realtime_config", '"token": ""'),
        ('realtime_channel "$orders:42" token=True', '{"channel": "$orders:42", "offset": '),
        ('realtime_channels "$orders:42" token=True', '{"channel": "$orders:42", "offset": '),
    ],
)
def test_part_of_a_page_in_a_cache_has_no_token(
    tag: str, written: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Django's tag keeps it, and gives it to other visitors."""
    text = "{% load cache %}{% cache 60 part %}{% include part %}{% endcache %}"
    visitor = RequestFactory().get("/")
    visitor.user = User(username="a", pk=17)
    page_positions.note_begin(visitor)

    with override_settings(REALTIME=OPTIONS | {"session_authentication": False}):
        html = site.render(visitor, text, part=Template(f"{{% load realtime %}}{{% {tag} %}}"))

    assert written in html
    assert html.count(".") < 3, "a token has two points"
    assert [record.getMessage().split(" is ")[0] for record in caplog.records] == [
        "{% " + tag.split()[0].removesuffix("s") + " %}"
    ]


# without the middleware


def test_asgi_application_notes_the_time_too() -> None:
    expected = publish_before()
    request = request_begun(**{"realtime.at": time.time()})
    publish_before()
    assert elements(site.render(request, site.TAG)) == [expected]


@pytest.mark.parametrize("text", [site.TAG, site.TOKEN])
def test_request_that_was_not_noted_is_a_mistake_of_the_site(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="PositionMiddleware"):
        site.render(RequestFactory().get("/"), text)


async def test_tag_on_a_loop_needs_the_middleware() -> None:
    request = request_begun(**{"realtime.at": time.time()})
    with pytest.raises(ImproperlyConfigured, match="PositionMiddleware"):
        site.render(request, site.TAG)


def test_process_with_the_dummy_engine_has_no_positions(service: TestService) -> None:
    service.stop()
    with override_settings(REALTIME={**OPTIONS, "engine": "dummy"}):
        serving.config()
        found = elements(Client().get("/page").content)
    service.start()
    assert found == [{"channel": "orders:42"}]
