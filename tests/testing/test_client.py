"""The client in memory: what front-end code does, without a server."""

from __future__ import annotations

import re
from typing import Any

import pytest

import realtime
from realtime import tokens
from realtime.errors import (
    AlreadySubscribed,
    DisconnectBadRequest,
    DisconnectForced,
    DisconnectInvalidToken,
    NamespaceNotFound,
    NotAvailable,
    PermissionDenied,
)
from realtime.testing import HandshakeRefused, TestService

# who connects


@pytest.mark.parametrize("user", [17, "17"], ids=["number", "text"])
def test_client_is_the_user_of_its_id(service: TestService, user: Any) -> None:
    with service.client(user) as client:
        client.subscribe("inbox#17")
        client.subscribe("news")
        assert realtime.presence("news") == {client.id: {"user": "17", "client": client.id}}


@pytest.mark.django_db
def test_client_is_the_django_user(service: TestService, django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("alice")
    with service.client(user, info={"name": "alice"}) as client:
        client.subscribe("news")
        assert client.presence("news") == {
            client.id: {"user": str(user.pk), "client": client.id, "conn_info": {"name": "alice"}}
        }


def test_client_uses_a_token_of_the_site(service: TestService) -> None:
    token = tokens.connection_token("42", channels=["news"])
    with service.client(token=token) as client:
        realtime.publish("news", 1)
        client.expect("news", 1)


def test_token_of_a_function_is_made_anew_for_every_connect(service: TestService) -> None:
    made: list[str] = []

    def make() -> str:
        made.append(tokens.connection_token("42"))
        return made[-1]

    with service.client(token=make) as client:
        client.resume()
    assert len(made) == 2


def test_log_says_why_a_visitor_was_refused(
    service: TestService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "realtime.client")
    with pytest.raises(DisconnectBadRequest):
        service.client().connect()
    assert "it sent no token, and no login session and no hook identifies it" in caplog.text
    assert "of user '' at 127.0.0.1: 3003: bad request" in caplog.text


def test_invalid_token_is_a_disconnect(service: TestService) -> None:
    with pytest.raises(DisconnectInvalidToken):
        service.client(token="nonsense").connect()


def test_client_without_user_is_anonymous_where_they_are_allowed(
    service: TestService, settings: Any
) -> None:
    settings.REALTIME = {**settings.REALTIME, "client_anonymous": True, "anonymous": True}
    with service.client() as client:
        client.subscribe("news")
        assert realtime.presence("news")[client.id]["user"] == ""


def test_page_of_a_wrong_origin_is_refused_with_403(service: TestService, settings: Any) -> None:
    settings.REALTIME = {**settings.REALTIME, "allowed_origins": ["https://good.example"]}
    with service.client("17", headers={"Origin": "https://good.example"}):
        pass
    with pytest.raises(HandshakeRefused) as refused:
        service.client("17", headers={"Origin": "https://evil.example"}).connect()
    assert refused.value.status == 403


def test_mistakes_of_a_test_are_told(service: TestService) -> None:
    with pytest.raises(TypeError):
        service.client("17", token="nonsense")
    with pytest.raises(ConnectionError, match=re.escape("connect()")):
        service.client("17").subscribe("news")


def test_command_that_is_refused_raises_the_error_of_its_code(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("news")

        with pytest.raises(AlreadySubscribed):
            client.subscribe("news")
        with pytest.raises(NamespaceNotFound):
            client.subscribe("nope:lobby")
        with pytest.raises(PermissionDenied):
            client.publish("news", 1)
        with pytest.raises(NotAvailable):
            client.history("news")
        with pytest.raises(NotAvailable):
            client.rpc("add")


def test_client_publishes_and_others_see_who(service: TestService) -> None:
    with service.client("1") as alice, service.client("2") as bob:
        bob.subscribe("chat:lobby")
        alice.publish("chat:lobby", {"text": "hi"})
        received = bob.expect("chat:lobby", {"text": "hi"})
        assert received.info == {"user": "1", "client": alice.id}
        assert received.offset == 1


def test_history_and_presence_are_read(service: TestService) -> None:
    with service.client("1") as one, service.client("1") as other, service.client("2") as bob:
        for client in (one, other, bob):
            client.subscribe("chat:lobby")
        for number in range(5):
            realtime.publish("chat:lobby", number)
        assert [kept.data for kept in one.history("chat:lobby")] == [2, 3, 4], "oldest first"
        assert one.presence_stats("chat:lobby") == {"num_clients": 3, "num_users": 2}


def test_private_channel_takes_a_token_for_this_connection(service: TestService) -> None:
    with service.client("17") as client:
        with pytest.raises(PermissionDenied):
            client.subscribe("$chat:staff")
        client.subscribe("$chat:staff", token=tokens.subscription_token)
        realtime.publish("$chat:staff", 1)
        client.expect("$chat:staff", 1)


def test_refreshed_connection_goes_on(service: TestService) -> None:
    with service.client(token=tokens.connection_token("17", ttl=60)) as client:
        client.refresh(tokens.connection_token("17", ttl=3600))
        client.subscribe("news")


def test_publications_of_a_channel_are_expected_in_their_order(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("news")
        client.subscribe("other")
        realtime.broadcast(["news", "other"], 1)
        realtime.broadcast(["news", "other"], 2)
        client.expect("other", 1)
        client.expect("news", 1)
        client.expect("news", 2)
        client.expect("other", 2)
        client.expect_nothing()


def test_failed_expectation_shows_what_came(service: TestService) -> None:
    with service.client("17") as client:
        for channel in ("news", "other"):
            client.subscribe(channel)
        realtime.publish("news", {"text": "hi"})
        with pytest.raises(AssertionError, match=r"is \{'text': 'hi'\}, not 1"):
            client.expect("news", 1)
        realtime.publish("other", {"text": "hi"})
        with pytest.raises(AssertionError, match=r"\{'text': 'hi'\} in 'other'"):
            client.expect("news", timeout=0.01)
        with pytest.raises(AssertionError, match=r"\{'text': 'hi'\} in 'other'"):
            client.expect_nothing()
        client.expect_nothing("news")


def test_others_are_seen_to_join_and_leave(service: TestService) -> None:
    with service.client("1") as alice:
        alice.subscribe("chat:lobby")
        assert alice.expect_join("chat:lobby")["client"] == alice.id
        with service.client("2") as bob:
            bob.subscribe("chat:lobby")
            assert alice.expect_join("chat:lobby") == {"user": "2", "client": bob.id}
        assert alice.expect_leave("chat:lobby") == {"user": "2", "client": bob.id}


def test_unsubscribed_client_receives_nothing(service: TestService) -> None:
    with service.client("17") as client:
        for channel in ("news", "other"):
            client.subscribe(channel)
        client.unsubscribe("news")
        realtime.unsubscribe("17", "other")
        client.expect_unsubscribed("other")
        realtime.broadcast(["news", "other"], 1)
        client.expect_nothing()


def test_client_knows_how_it_was_closed(service: TestService) -> None:
    client = service.client("17").connect()
    with pytest.raises(AssertionError, match="did not close"):
        client.closed(timeout=0.01)

    realtime.disconnect("17")

    with pytest.raises(AssertionError, match="3012: force disconnect"):
        client.closed(3005)
    closed = client.closed(3012)
    assert (closed.reason, closed.reconnect) == ("force disconnect", False)
    with pytest.raises(DisconnectForced):
        client.subscribe("news")
    with pytest.raises(AssertionError, match="3012: force disconnect"):
        client.expect("news")


def test_client_that_closes_is_gone_when_the_block_ends(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("news")
    assert realtime.presence("news") == {}
    assert realtime.info()[0]["num_clients"] == 0


async def test_sync_method_on_an_event_loop_names_its_async_version(service: TestService) -> None:
    async with service.client("17") as client:
        with pytest.raises(RuntimeError, match=r"TestClient\.asubscribe"):
            client.subscribe("news")
