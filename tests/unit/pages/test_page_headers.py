"""Positions in headers and event IDs of responses."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client
from rest_framework.response import Response
from rest_framework.views import APIView

import realtime
from realtime.engine.memory import MemoryBroker
from realtime.errors import EngineUnavailable
from realtime.pages import RealtimePositionMixin, aevent_id, set_positions
from realtime.protocol import event_ids
from realtime.protocol.messages import StreamPosition
from tests.unit.pages import site
from tests.unit.pages.parts import elements, publish_before, request_begun


@pytest.mark.parametrize("path", ["json", "ajson"])
def test_header_has_the_positions(path: str) -> None:
    expected = [publish_before("orders:1"), publish_before("orders:2")]
    response = Client().get(f"/{path}", {"name": ["orders:1", "orders:2"]})
    assert json.loads(f"[{response.headers['Realtime-Position']}]") == expected
    assert response.headers["Access-Control-Expose-Headers"] == "Realtime-Position"


def test_header_keeps_the_positions_of_earlier_calls() -> None:
    expected = [publish_before("orders:1"), publish_before("orders:2")]
    response = Client().get("/json", {"name": "orders:1", "more": ["orders:2", "orders:1"]})
    assert json.loads(f"[{response.headers['Realtime-Position']}]") == expected


@pytest.mark.parametrize("other", ["{", "5", '[{"channel":"a"}]', '{"a":1}', '{"channel":1}', "ä"])
def test_header_that_no_call_wrote_is_replaced(other: str) -> None:
    expected = publish_before("orders:1")
    response = HttpResponse(headers={"Realtime-Position": other})
    set_positions(response, request_begun(**{"realtime.at": time.time()}), ["orders:1"])
    assert json.loads(response.headers["Realtime-Position"]) == expected


def test_header_is_ascii() -> None:
    response = Client().get("/json", {"name": ["orders:1", "orders:ä\r\nSet-Cookie: a"]})
    (found,) = json.loads(f"[{response.headers['Realtime-Position']}]")
    assert found["channel"] == "orders:1"


# event IDs


SINCE = '{% load realtime %}/connection/events?since={% realtime_since "orders:1" "orders:2" %}'


def since_of(html: str) -> dict[str, Any]:
    text = html.partition("since=")[2]
    return dict(event_ids.decode(text, ["orders:1", "orders:2"]))


def test_event_id_has_the_positions() -> None:
    first, second = publish_before("orders:1"), publish_before("orders:2")
    found = since_of(Client().get("/page", {"text": SINCE}).content.decode())
    assert found == {
        each["channel"]: StreamPosition(each["offset"], each["epoch"]) for each in (first, second)
    }


async def test_event_id_is_there_for_coroutines() -> None:
    expected = await asyncio.to_thread(publish_before, "orders:1")
    request = request_begun(**{"realtime.at": time.time()})
    text = await aevent_id(request, ["orders:1"])
    assert since_of(f"since={text}") == {
        "orders:1": StreamPosition(expected["offset"], expected["epoch"])
    }
    with pytest.raises(ImproperlyConfigured, match="aevent_id"):
        site.render(request, SINCE)


def test_event_id_of_an_unknown_position_is_of_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Any:
        raise EngineUnavailable("away")

    monkeypatch.setattr(MemoryBroker, "positions", fail)

    found = since_of(Client().get("/page", {"text": SINCE}).content.decode())

    assert found["orders:1"] == StreamPosition(0, "unknown")


# REST framework


class Orders(RealtimePositionMixin, APIView):
    realtime_channels = ("orders:{team}", "orders:all")

    def get(self, request: Any, team: str) -> Response:
        realtime.publish("orders:7", "after the query")
        return Response({}, status=404 if team == "none" else 200)


def test_view_of_rest_framework_has_the_positions() -> None:
    expected = publish_before("orders:7")
    request = request_begun(**{"realtime.at": time.time()})
    response = Orders.as_view()(request, team="7")
    found = json.loads(f"[{response.headers['Realtime-Position']}]")
    assert found[0] == expected
    assert [each["channel"] for each in found] == ["orders:7", "orders:all"]


@pytest.mark.parametrize("text", [site.TAG, site.TOKEN])
def test_template_of_rest_framework_has_positions(text: str) -> None:
    expected = publish_before("$orders:42" if text == site.TOKEN else "orders:42")
    response = Client().get("/rest", {"text": text})
    (found,) = elements(response.content)
    assert found | expected == found


@pytest.mark.parametrize("team", ["ä", "none"])
def test_view_of_rest_framework_without_positions(team: str) -> None:
    request = request_begun(**{"realtime.at": time.time()})
    response = Orders.as_view()(request, team=team)
    assert "orders:ä" not in response.headers.get("Realtime-Position", "")
    assert ("Realtime-Position" in response.headers) == (team == "ä")
