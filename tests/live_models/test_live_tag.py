"""The tag `live`: a part of a page that follows a channel, from its position at the beginning."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.template import Context, Template, TemplateSyntaxError
from django.test import RequestFactory

import realtime
from realtime.engine.memory import MemoryBroker
from realtime.errors import EngineUnavailable, NamespaceNotFound, NotAvailable
from realtime.pages import page_positions
from realtime.pages.middleware import PositionMiddleware
from tests.unit.pages.parts import elements, wait_a_millisecond

BLOCK = "{{% load realtime_live %}}{{% live {} %}}<li>{{{{ text }}}}</li>{{% endlive %}}"


@pytest.fixture(autouse=True)
def no_failure_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_positions, "_reader", page_positions._Reader())


def render(request: Any, arguments: str, **values: Any) -> str:
    template = Template(BLOCK.format(arguments))
    return template.render(Context({"request": request, **values}))


def page(arguments: str, **values: Any) -> str:
    """A page of a site with the middleware. A publication comes behind its query."""

    def view(request: Any) -> HttpResponse:
        html = render(request, arguments, **values)
        realtime.publish("team:7:orders", "after the query")
        return HttpResponse(html)

    wait_a_millisecond()
    response: HttpResponse = PositionMiddleware(view)(RequestFactory().get("/"))
    return response.content.decode()


def test_block_stands_in_an_element_behind_channel_and_position() -> None:
    before = realtime.publish("team:7:orders", "before")
    assert before is not None
    html = page('"team:7:orders"', text="<i>")
    assert elements(html) == [
        {"channel": "team:7:orders", "offset": before.offset, "epoch": before.epoch}
    ]
    assert html.startswith('<realtime-live channel="team:7:orders" id="live-team-7-orders"><script')
    assert html.endswith("</script><li>&lt;i&gt;</li></realtime-live>")


def test_id_address_and_the_place_of_new_rows_can_be_chosen() -> None:
    html = page('channel id="orders" add="prepend" src="/orders?a&b"', channel="team:7:orders")
    assert html.startswith(
        '<realtime-live channel="team:7:orders" id="orders" data-add="prepend" src="/orders?a&b">'
    )


def test_names_that_visitors_choose_stay_in_their_attributes() -> None:
    html = page("channel id=name src=name", channel='team:"><b>', name='"><b>')
    assert "<b>" not in html
    assert 'channel="team:&quot;&gt;&lt;b&gt;"' in html


def test_without_middleware_the_position_is_read_at_once() -> None:
    realtime.publish("team:7:orders", "before")
    request = RequestFactory().get("/")
    wait_a_millisecond()
    request.scope = {"realtime.at": time.time()}  # type: ignore[attr-defined]
    (found,) = elements(render(request, '"team:7:orders"'))
    assert found["offset"] == 1


def test_page_without_an_engine_is_there_without_a_position(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: Any) -> Any:
        raise EngineUnavailable("away")

    monkeypatch.setattr(MemoryBroker, "positions", fail)

    html = page('"team:7:orders"', text="a row")

    assert elements(html) == [{"channel": "team:7:orders"}]
    assert "<li>a row</li></realtime-live>" in html


def test_mistakes_are_said() -> None:
    with pytest.raises(NotAvailable):
        page('"plain:7"')
    with pytest.raises(NamespaceNotFound):
        page('"unknown:7"')
    with pytest.raises(TemplateSyntaxError, match="append, prepend"):
        page('"team:7" add="top"')
    with pytest.raises(ImproperlyConfigured, match="request"):
        render(None, '"team:7"')
