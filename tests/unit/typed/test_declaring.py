"""`realtime.channel`: names of channels, publishing and history by one declaration."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, Never, assert_type
from uuid import UUID

import msgspec
import pytest

import realtime
from realtime.errors import BadRequest
from realtime.testing import TestService, capture
from realtime.typed.adapters import adapter_of
from realtime.typed.contract import Mismatch
from tests.unit.typed.shop import Changed, Comment, Note, Payment, Place, Rating, Shipped

HISTORY = {"history_size": 10, "history_lifetime": 60}
OPTIONS: dict[str, Any] = {"namespaces": [{"name": "orders", "publish": True, **HISTORY}]}

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def options(settings: Any) -> None:
    settings.REALTIME = OPTIONS


def test_parameters_make_the_name() -> None:
    orders = realtime.channel("orders:{pk}-{part}", sends=Changed)
    assert orders(pk=42, part="a").name == "orders:42-a"
    assert orders(pk=UUID(int=7), part="b").name == f"orders:{UUID(int=7)}-b"
    assert orders("orders:1-2").name == "orders:1-2"
    assert orders.pattern == "orders:{pk}-{part}"


def test_pattern_without_names_is_one_channel() -> None:
    assert realtime.channel("news", sends=str)().name == "news"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"id": 1}, "has no parameter 'id'; it has: pk, part"),
        ({"pk": 1}, "needs part"),
        ({"pk": True, "part": "a"}, "pk must be text"),
        ({"pk": None, "part": "a"}, "pk must be text"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, Any], text: str) -> None:
    orders = realtime.channel("orders:{pk}-{part}", sends=Changed)
    with pytest.raises(TypeError, match=text):
        orders(**params)


@pytest.mark.parametrize("params", [{"pk": ""}, {"pk": "a:b"}])
def test_parameter_that_makes_another_channel_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is not the channel of"):
        realtime.channel("orders:{pk}", sends=Changed)(**params)


def test_parameters_that_would_be_read_as_others_are_refused() -> None:
    """The channel of tenant 1-2 must not be that of tenant 1."""
    orders = realtime.channel("orders:{tenant}-{pk}", sends=Changed)
    with pytest.raises(ValueError, match="is not the channel of"):
        orders(tenant="1", pk="2-3")


def test_pattern_with_a_star_takes_names() -> None:
    stock = realtime.channel("orders:*", sends=Changed)
    assert stock("orders:eu:1").name == "orders:eu:1"
    with pytest.raises(TypeError, match="has a star"):
        stock()
    with pytest.raises(ValueError, match="does not match"):
        stock("stock:1")
    with pytest.raises(TypeError, match="or parameters"):
        stock("orders:1", pk=1)


def test_declaration_needs_a_type_and_a_pattern() -> None:
    with pytest.raises(TypeError, match="needs sends, accepts or both"):
        realtime.channel("orders:{pk}")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="is not a pattern"):
        realtime.channel("orders:{", sends=int)


def test_values_are_published_as_their_json() -> None:
    orders = realtime.channel("orders:{pk}", sends=Changed | Shipped)
    with capture() as outbox:
        orders(pk=1).publish(Changed(3))
        orders(pk=1).publish(Shipped(NOON), tags={"a": "b"})
    assert outbox == [
        ("orders:1", {"type": "Changed", "lines": 3}),
        ("orders:1", {"type": "Shipped", "at": "2026-11-23T12:00:00Z", "by": None}),
    ]


def test_values_of_every_library_are_published() -> None:
    with capture() as outbox:
        realtime.channel("orders:a", sends=Place)().publish(Place(1, 2))
        realtime.channel("orders:b", sends=Note)().publish({"text": "hi"})
        realtime.channel("orders:c", sends=Payment)().publish(Payment(amount=5))
        realtime.channel("orders:d", sends=Rating)().publish({"stars": 5})

    assert [data for _, data in outbox] == [
        {"x": 1.0, "y": 2.0},
        {"text": "hi"},
        {"amount": 5, "notes": []},
        {"stars": 5},
    ]


def test_types_decide_about_json_and_not_the_encoder_of_the_site(settings: Any) -> None:
    settings.REALTIME = {
        **OPTIONS,
        "json_encoder": "django.core.serializers.json.DjangoJSONEncoder",
    }
    with capture() as outbox:
        realtime.channel("orders:{pk}", sends=Place)(pk=1).publish(Place(1, 2))
    assert outbox == [("orders:1", {"x": 1.0, "y": 2.0})]


async def test_async_version_publishes_and_reads() -> None:
    orders = realtime.channel("orders:{pk}", sends=Changed, accepts=Comment)

    ratings = realtime.channel("orders:{pk}:ratings", sends=Rating)

    async with TestService():
        position = await orders(pk=1).apublish(Changed(1))
        await ratings(pk=1).apublish({"stars": 3})

        assert position is not None
        assert position.offset == 1
        assert await orders(pk=1).ahistory() == [Changed(1)]
        assert await ratings(pk=1).ahistory() == [{"stars": 3}]


def test_history_has_the_values_of_the_site_and_of_clients() -> None:
    orders = realtime.channel("orders:{pk}", sends=Changed | Shipped, accepts=Comment)
    with TestService() as service, service.client("17") as client:
        orders(pk=1).publish(Changed(3))
        client.publish("orders:1", {"text": "nice"})
        orders(pk=1).publish(Shipped(NOON))
        assert orders(pk=1).history() == [Changed(3), Comment("nice"), Shipped(NOON)]
        assert orders(pk=1).history(limit=1, reverse=True) == [Shipped(NOON)]


class Closed(msgspec.Struct, tag=True):
    """It has nothing that must be there, but its tag."""

    reason: str | None = None


class Noted(msgspec.Struct):
    text: str


@pytest.mark.parametrize("declared", [Closed, Closed | Noted])
def test_struct_with_a_tag_is_known_by_it(declared: Any) -> None:
    adapter = adapter_of(declared)
    assert adapter.decode(b'{"type":"Closed"}') == Closed()
    with pytest.raises(Mismatch, match="missing required field `type`"):
        adapter.decode(b"{}")


def test_comment_is_not_read_as_a_struct_whose_tag_it_lacks() -> None:
    assert adapter_of(Closed | Noted).decode(b'{"text":"hi"}') == Noted("hi")


def test_history_of_another_type_raises() -> None:
    with TestService():
        realtime.publish("orders:1", {"type": "Changed", "rows": 3})
        orders = realtime.channel("orders:{pk}", sends=Changed)
        with pytest.raises(BadRequest, match="required field `lines`"):
            orders(pk=1).history()


def test_history_of_another_type_is_left_out_and_logged(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REALTIME = {**OPTIONS, "typed_channels": "off"}
    orders = realtime.channel("orders:{pk}", sends=Changed)
    with TestService(), caplog.at_level(logging.WARNING, "realtime.typed"):
        realtime.publish("orders:1", {"type": "Changed", "rows": 3})
        orders(pk=1).publish(Changed(3))
        assert orders(pk=1).history() == [Changed(3)]
    assert "Publication 1 of 'orders:1' has another type" in caplog.text


def test_channel_that_sends_nothing_publishes_nothing() -> None:
    orders: Any = realtime.channel("orders:{pk}", accepts=Comment)
    with pytest.raises(TypeError, match="declares nothing that it sends"):
        orders(pk=1).publish(Comment("hi"))


def test_type_checkers_know_what_goes_in_and_what_comes_out() -> None:
    """`make check` reads this function, too: an `ignore` that is not needed is an error there."""
    orders = realtime.channel("orders:{pk}", sends=Changed | Shipped, accepts=Comment)
    news = realtime.channel("news", sends=str)
    notes = realtime.channel("notes", accepts=Note)
    ratings = realtime.channel("ratings", sends=Rating)

    assert_type(orders, realtime.TypedChannels[Changed | Shipped, Comment])
    assert_type(news, realtime.TypedChannels[str, Never])
    assert_type(notes, realtime.TypedChannels[Never, Note])
    assert_type(ratings, realtime.TypedChannels[Any, Any])

    def never_run() -> None:
        assert_type(orders(pk=1).history(), list[Changed | Shipped | Comment])
        assert_type(news().publish("hi", once="key"), realtime.Position | None)
        orders(pk=1).publish(Comment("hi"))  # type: ignore[arg-type]
        orders(pk=1.5)  # type: ignore[arg-type]
        news().publish("hi", onec="key")  # type: ignore[call-arg]
        ratings().publish({"stars": 5})
        realtime.channel("nothing")  # type: ignore[call-overload]


def test_first_declaration_after_the_start_is_worth_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    realtime.channel("orders:{pk}", sends=Changed)
    realtime.channel("stock:{pk}", sends=Changed)
    [record] = caplog.records
    assert "'orders:{pk}', is declared after the start" in record.getMessage()
