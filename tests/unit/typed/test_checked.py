"""Publications of clients and of the site into typed channels: what gets through, and what not."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from django.core import mail

import realtime
from realtime import hooks
from realtime.cluster.member import Member
from realtime.errors import BadRequest, InternalError
from realtime.hooks.registry import registry
from realtime.server_api import methods, methods_v2
from realtime.serving import serving
from realtime.testing import TestService, capture
from realtime.typed.declarations import Declarations
from tests.unit.typed.shop import Changed, Comment, Note, Payment, Place, Rating, Shipped

HISTORY = {"history_size": 10, "history_lifetime": 60}
OPTIONS: dict[str, Any] = {
    "namespaces": [
        {"name": "orders", "publish": True, **HISTORY},
        {"name": "other", "publish": True, **HISTORY},
    ]
}


@pytest.fixture(autouse=True)
def options(settings: Any) -> None:
    settings.REALTIME = OPTIONS


def published(client: Any, data: object, channel: str = "orders:1") -> tuple[int, str] | None:
    """What a client that publishes is told; None for success."""
    try:
        client.publish(channel, data)
    except realtime.Error as error:
        return error.code, error.message
    return None


# clients


@pytest.mark.parametrize(
    ("accepts", "right", "wrong", "reason"),
    [
        (Comment, {"text": "hi"}, {"text": 5}, "$.text"),
        (Comment, {"text": "hi", "stars": 1}, {"stars": 1}, "text"),
        (Changed | Shipped, {"type": "Changed", "lines": 1}, {"type": "Sold"}, "$.type"),
        (Place, {"x": 1, "y": 2}, {"x": 1, "y": None}, "$.y"),
        (Note, {"text": "hi"}, [], "object"),
        (list[Comment], [{"text": "hi"}], [{"text": "hi"}, {"text": []}], "$[1].text"),
        (dict[str, int], {"a": 1}, {"a": "1"}, "$[...]"),
        (Payment, {"amount": 1}, {"amount": "1"}, "$.amount"),
        (Payment, {"amount": 1, "notes": ["a"]}, {"amount": 1, "notes": [5]}, "$.notes[0]"),
        (Rating, {"stars": 5}, {"stars": 6}, "$.stars"),
        (
            Rating,
            {"stars": 5, "words": ["a"]},
            {"stars": 5, "words": ["a", "toolong"]},
            "$.words[1]",
        ),
        (Place | Payment, {"amount": 1}, {"x": 1}, "Payment"),
        (Comment | Place, {"x": 1, "y": 2}, {"x": 1}, "Place"),
        (int | None, None, "a", "int"),
    ],
)
def test_client_publishes_what_is_accepted_and_nothing_else(
    accepts: Any, right: object, wrong: object, reason: str
) -> None:
    realtime.channel("orders:{pk}", accepts=accepts)

    with TestService() as service, service.client("17") as client:
        refused = published(client, wrong)
        assert published(client, right) is None
        kept = [each["data"] for each in realtime.history("orders:1")]

    assert refused is not None
    assert refused[0] == 107
    assert refused[1].startswith("bad request: ")
    assert reason in refused[1]
    assert kept == [right]


def test_client_publishes_nothing_where_nothing_is_accepted() -> None:
    realtime.channel("orders:{pk}", sends=Changed)
    with TestService() as service, service.client("17") as client:
        assert published(client, {"type": "Changed", "lines": 1}) == (
            107,
            "bad request: clients publish nothing here",
        )


def test_channels_without_a_declaration_take_everything() -> None:
    realtime.channel("orders:{pk}", accepts=Comment)
    with TestService() as service, service.client("17") as client:
        assert published(client, [], "other:1") is None
        assert published(client, [], "orders:1:2") is None


def test_clients_are_checked_whatever_the_option_says(settings: Any) -> None:
    settings.REALTIME = {**OPTIONS, "typed_channels": "off"}
    realtime.channel("orders:{pk}", accepts=Comment)
    with TestService() as service, service.client("17") as client:
        assert published(client, {}) is not None


def test_message_of_an_error_is_bounded() -> None:
    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        pass

    realtime.channel("orders:{pk}", accepts=Strict)

    with TestService() as service, service.client("17") as client:
        refused = published(client, {"x" * 10_000: 1})

    assert refused is not None
    assert len(refused[1]) == 300


def test_hook_is_asked_about_good_data_alone(kept_hooks: None) -> None:
    asked: list[object] = []
    realtime.channel("orders:{pk}", sends=Changed, accepts=Comment)

    @hooks.publish("orders:{pk}")
    def answer(request: Any) -> Any:
        asked.append(request.data)
        return {"type": "Changed", "lines": request.data["stars"]}

    with TestService() as service, service.client("17") as client:
        assert published(client, {"text": 5}) is not None
        assert published(client, {"text": "hi", "stars": 5}) is None

    assert asked == [{"text": "hi", "stars": 5}]


def test_hook_that_answers_with_another_type_fails(
    kept_hooks: None, caplog: pytest.LogCaptureFixture
) -> None:
    realtime.channel("orders:{pk}", accepts=Comment)
    hooks.publish("orders:{pk}")(lambda request: {"text": 5})
    with TestService() as service, service.client("17") as client:
        assert published(client, {"text": "hi"}) == (100, "internal server error")
        assert realtime.history("orders:1") == []
    assert "gave an answer of another type" in caplog.text


@pytest.fixture
def kept_hooks() -> Any:
    """Hooks that a test registers are forgotten."""
    before = list(registry.publish)
    yield
    registry.publish[:] = before


def test_mistake_in_a_declaration_keeps_clients_from_publishing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    realtime.channel("orders:{pk}", accepts=unknown_class())
    with TestService() as service, service.client("17") as client:
        assert published(client, {}) == (100, "internal server error")
    assert "cannot be used" in caplog.text


def unknown_class() -> Any:
    """A class that no library knows."""

    class Unknown:
        pass

    return Unknown


# the site


def test_site_publishes_what_subscribers_may_get() -> None:
    realtime.channel("orders:{pk}", sends=Changed | Shipped, accepts=Comment)

    with capture() as outbox:
        realtime.publish("orders:1", {"type": "Changed", "lines": 1})
        realtime.publish("orders:1", Comment("hi"))
        with pytest.raises(BadRequest, match=r"\$\.lines"):
            realtime.publish("orders:1", {"type": "Changed", "lines": "1"})
        with pytest.raises(BadRequest):
            realtime.publish_many([("other:1", 1), ("orders:1", 1)])
        with pytest.raises(BadRequest):
            realtime.broadcast(["other:1", "orders:1"], 1)

    assert [channel for channel, _ in outbox] == ["orders:1", "orders:1"]


@pytest.mark.parametrize("run", ["first", "second"])
def test_http_api_publishes_what_subscribers_may_get(run: str) -> None:
    realtime.channel("orders:{pk}", sends=Changed)

    async def publish(member: Member, value: object) -> None:
        params = msgspec.json.encode({"channel": "orders:1", "data": value})
        if run == "first":
            await methods.run(member, methods.PUBLISH, params)
        else:
            await methods_v2.run(member, "publish", params)

    with TestService():
        with pytest.raises(BadRequest, match=r"\$\.lines"):
            serving.call(lambda member: publish(member, {"type": "Changed", "lines": []}))
        serving.call(lambda member: publish(member, {"type": "Changed", "lines": 1}))

        assert len(realtime.history("orders:1")) == 1


def test_option_off_lets_the_site_publish_everything(settings: Any) -> None:
    settings.REALTIME = {**OPTIONS, "typed_channels": "off"}
    realtime.channel("orders:{pk}", sends=Changed)
    with capture() as outbox:
        realtime.publish("orders:1", 1)
    assert outbox == [("orders:1", 1)]


def test_option_log_publishes_and_warns(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.REALTIME = {**OPTIONS, "typed_channels": "log"}
    realtime.channel("orders:{pk}", sends=Changed)
    with capture() as outbox, caplog.at_level(logging.WARNING, "realtime.typed"):
        realtime.publish("orders:1", 1)
    assert outbox == [("orders:1", 1)]
    assert "A publication into 'orders:1' has another type" in caplog.text


def test_log_has_one_bounded_line_whatever_the_keys_are(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        pass

    settings.REALTIME = {**OPTIONS, "typed_channels": "log"}
    realtime.channel("orders:{pk}", sends=Strict)

    with capture(), caplog.at_level(logging.WARNING, "realtime.typed"):
        realtime.publish("orders:1", {"a\nCRITICAL \x1b[2J" + "x" * 10_000: 1})

    [line] = [each.getMessage() for each in caplog.records if "another type" in each.getMessage()]
    assert "a\\nCRITICAL \\x1b[2J" in line
    assert line.isprintable()
    assert len(line) < 400


@pytest.mark.parametrize(("debug", "raises"), [(True, True), (False, False)])
def test_default_raises_with_debug_and_in_tests(
    settings: Any, monkeypatch: pytest.MonkeyPatch, debug: bool, raises: bool
) -> None:
    realtime.channel("orders:{pk}", sends=Changed)
    with pytest.raises(BadRequest):  # a test
        realtime.publish("orders:1", 1)
    settings.DEBUG = debug
    monkeypatch.delattr(mail, "outbox")  # what Django's runner makes

    with capture() as outbox:
        try:
            realtime.publish("orders:1", 1)
        except BadRequest:
            assert raises

    assert len(outbox) == (not raises)


class Broken(msgspec.Struct):
    """Its own check fails."""

    text: str

    def __post_init__(self) -> None:
        raise LookupError(self.text)


@pytest.mark.parametrize("mode", ["raise", "log"])
def test_check_that_fails_is_logged_and_refuses_where_it_should(
    settings: Any, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    settings.REALTIME = {**OPTIONS, "typed_channels": mode}
    realtime.channel("orders:{pk}", sends=Broken, accepts=Broken)

    with TestService() as service, service.client("17") as client:
        assert published(client, {"text": "hi"}) == (100, "internal server error")
        with pytest.raises(InternalError) if mode == "raise" else nullcontext():
            realtime.publish("orders:1", {"text": "hi"})
        assert len(realtime.history("orders:1")) == (mode == "log")

    assert "A publication into 'orders:1' could not be checked" in caplog.text
    assert "LookupError: hi" in caplog.text


async def test_serializer_is_not_run_on_an_event_loop() -> None:
    """It may query the database."""
    realtime.channel("orders:{pk}", sends=Rating)
    with capture() as outbox:
        await realtime.apublish("orders:1", {"stars": 9})
    assert outbox == [("orders:1", {"stars": 9})]


# which declaration


def test_first_declaration_that_matches_decides(site: Declarations) -> None:
    realtime.channel("orders:admin", accepts=int)
    realtime.channel("orders:{pk}", accepts=str)
    realtime.channel("{place}:1", accepts=bool)
    realtime.channel("news", accepts=float)

    def found(channel: str) -> str | None:
        declaration = site.find(channel)
        return None if declaration is None else declaration.pattern.text

    assert found("orders:admin") == "orders:admin"
    assert found("orders:1") == "orders:{pk}"
    assert found("shop:1") == "{place}:1"
    assert found("news") == "news"
    assert found("newsletter") is None
    assert found("news:2") is None
    assert found("shop:2") is None
