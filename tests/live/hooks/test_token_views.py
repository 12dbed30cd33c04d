"""The views that give tokens: to whom, for what, and what stands in them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import do, environment
from tests.live.lounge import ANONYMOUS, OPTIONS, claims, log_in, post, subscribe
from tests.server import Server, wait_until

LIFETIME = 600


@pytest.fixture(scope="module")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The site with private channels."""
    return serve(environment=environment(tmp_path_factory, "lounge"), **OPTIONS)


@pytest.fixture(scope="module")
def anonymous(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The same, where clients may connect as nobody."""
    return serve(environment=environment(tmp_path_factory, "lounge"), **ANONYMOUS)


# refresh


def test_refresh_gives_a_token_for_an_hour_with_the_connection_info(server: Server) -> None:
    visitor, pk = log_in(server)
    before = int(time.time())

    response = post(server, "refresh", visitor=visitor)

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json().keys() == {"token"}
    found = claims(response.json()["token"])
    assert before + LIFETIME <= found.pop("exp") <= time.time() + LIFETIME
    # what the chat's info hook says
    assert found == {"sub": pk, "info": {"name": visitor.username}}


@pytest.mark.parametrize("body", [b"", b"{}", b'{"a": [1]}', b"null", b"no JSON \xff"])
def test_body_of_a_refresh_does_not_matter(server: Server, body: bytes) -> None:
    visitor, pk = log_in(server)
    response = post(server, "refresh", body, visitor=visitor)
    assert claims(response.json()["token"])["sub"] == pk


def test_refresh_tells_the_client_of_nobody_to_give_up(server: Server) -> None:
    response = post(server, "refresh")
    assert (response.status_code, response.json()) == (200, {"token": ""})


@pytest.mark.parametrize("change", ["deactivate", "change_password", "delete"])
def test_refresh_tells_clients_of_a_login_that_ended_to_give_up(
    server: Server, change: str
) -> None:
    visitor, _ = log_in(server)
    do(server, change, username=visitor.username)
    assert post(server, "refresh", visitor=visitor).json() == {"token": ""}


def test_refresh_gives_nobody_an_anonymous_token_where_clients_may_be_anonymous(
    anonymous: Server,
) -> None:
    token = post(anonymous, "refresh").json()["token"]
    assert claims(token) == {"sub": ""}


async def test_anonymous_token_prolongs_no_connection_of_a_user(
    anonymous: Server, connect: Connect, unique: str
) -> None:
    """A visitor who logged out must not stay connected as the user."""
    client = await connect(anonymous, token=connection_token(unique, ttl=2))
    token = post(anonymous, "refresh").json()["token"]
    await client.send("refresh", {"token": token})
    assert await client.closed() == (3005, '{"reason":"expired","reconnect":true}')


# subscribe


def test_member_gets_a_token_that_says_what_the_function_answered(
    server: Server, unique: str
) -> None:
    visitor, _ = log_in(server, unique)
    channel = f"$lounge:{unique}"
    before = int(time.time())

    found = subscribe(server, channel, visitor=visitor, client="the client")

    assert found.keys() == {channel}
    assert before + LIFETIME <= found[channel].pop("exp") <= time.time() + LIFETIME
    assert found[channel] == {
        "client": "the client",
        "channel": channel,
        "info": {"name": visitor.username},
    }


async def test_token_lets_the_client_subscribe_with_its_channel_info(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    visitor, pk = log_in(server, unique)
    channel = f"$lounge:{unique}"
    client = await connect(server, user=pk)
    question = {"client": client.client, "channels": [channel]}
    [answer] = post(server, "subscribe", question, visitor=visitor).json()["channels"]

    result = await client.result("subscribe", answer)

    assert result["expires"] is True
    assert LIFETIME - 60 < result["ttl"] <= LIFETIME
    presence = await client.result("presence", {"channel": channel})
    info = presence["presence"][client.client]
    assert info == {"user": pk, "client": client.client, "chan_info": {"name": visitor.username}}


async def test_token_is_of_no_use_to_another_client(
    server: Server, connect: Connect, unique: str
) -> None:
    visitor, pk = log_in(server, unique)
    client = await connect(server, user=pk)
    question = {"client": f"{client.client}x", "channels": [f"$lounge:{unique}"]}
    [answer] = post(server, "subscribe", question, visitor=visitor).json()["channels"]
    error = await client.error("subscribe", answer)
    assert error == {"code": 103, "message": "permission denied"}


def test_channels_that_are_denied_are_left_out(server: Server, unique: str) -> None:
    visitor, _ = log_in(server, unique)
    allowed, denied = f"$lounge:{unique}", f"$lounge:{unique}-other"
    assert subscribe(server, denied, allowed, visitor=visitor).keys() == {allowed}
    assert subscribe(server, denied, visitor=visitor) == {}


def test_coroutine_decides_with_the_asynchronous_orm(server: Server, unique: str) -> None:
    visitor, _ = log_in(server, unique)
    allowed, denied = f"$later-{unique}", "$later-other"
    found = subscribe(server, denied, allowed, visitor=visitor)
    assert found.keys() == {allowed}
    assert "info" not in found[allowed]  # True allows, and says nothing


def test_channel_that_is_asked_for_twice_is_answered_once(server: Server, unique: str) -> None:
    visitor, _ = log_in(server)
    channel = f"$lounge:free-{unique}"
    question = {"client": "C", "channels": [channel, channel]}
    [answer] = post(server, "subscribe", question, visitor=visitor).json()["channels"]
    assert answer["channel"] == channel


def test_nothing_asked_for_is_nothing_answered(server: Server) -> None:
    assert subscribe(server) == {}


DENIED = {
    "public": "lounge:free-{unique}",
    "public for a function": "room:{unique}",
    "empty": "",
    "prefix alone": "$",
    "no function": "$elsewhere",
    "no function but that of all public channels": "$members:{unique}",
    "another beginning": "$$lounge:free-{unique}",
    "no such namespace": "$nope:free-{unique}",
    "only the server subscribes": "$closed:free-{unique}",
    "for another user": "$lounge:free-{unique}#0",
    "not ASCII": "$lounge:free-é",
    "too long": "$lounge:free-" + "x" * 255,
}


@pytest.mark.parametrize("channel", DENIED.values(), ids=DENIED)
def test_no_token_is_made(server: Server, unique: str, channel: str) -> None:
    visitor, _ = log_in(server, unique)
    assert subscribe(server, channel.format(unique=unique), visitor=visitor) == {}


def test_user_gets_a_token_for_a_channel_that_names_them(server: Server, unique: str) -> None:
    visitor, pk = log_in(server)
    channel = f"$lounge:free-{unique}#0,{pk}"
    assert subscribe(server, channel, visitor=visitor).keys() == {channel}


def test_nobody_gets_tokens_for_channels_with_the_option_anonymous_only(
    server: Server, unique: str
) -> None:
    """The function allows both."""
    channels = [f"$lounge:free-{unique}", f"$open:free-{unique}"]
    found = subscribe(server, *channels)
    assert found.keys() == {channels[1]}
    assert found[channels[1]]["info"] == {"name": ""}


def test_client_of_a_login_that_ended_gets_no_tokens(server: Server, unique: str) -> None:
    visitor, _ = log_in(server, unique)
    do(server, "deactivate", username=visitor.username)
    assert subscribe(server, f"$lounge:{unique}", visitor=visitor) == {}


def test_function_is_told_who_asks(server: Server) -> None:
    visitor, pk = log_in(server)
    visitor.http.headers["User-Agent"] = "a browser"
    found = subscribe(server, "$odd:request", visitor=visitor, client="the client")
    assert found["$odd:request"]["info"] == ["the client", pk, "", "http", "a browser", True]


@pytest.mark.parametrize(
    ("channel", "info"), [("$odd:none", {}), ("$odd:false", {"info": False})], ids=str
)
def test_answer_allows(server: Server, channel: str, info: dict[str, Any]) -> None:
    visitor, _ = log_in(server)
    found = subscribe(server, channel, visitor=visitor)[channel]
    assert {name: found[name] for name in found.keys() & {"info"}} == info


@pytest.mark.parametrize("answer", ["error", "disconnect", "failure", "object"])
def test_function_that_refuses_or_fails_spoils_nothing_for_other_channels(
    server: Server, answer: str, unique: str
) -> None:
    visitor, _ = log_in(server)
    good = f"$lounge:free-{unique}"
    assert subscribe(server, f"$odd:{answer}", good, visitor=visitor).keys() == {good}


@pytest.mark.parametrize("answer", ["error", "disconnect"])
def test_function_refuses(server: Server, answer: str) -> None:
    visitor, _ = log_in(server)
    assert subscribe(server, f"$odd:{answer}", visitor=visitor) == {}


@pytest.mark.parametrize("answer", ["failure", "object"])
def test_failure_of_all_that_could_be_decided_is_status_500_and_in_the_log(
    server: Server, answer: str, unique: str
) -> None:
    """Nobody said that it is denied."""
    visitor, _ = log_in(server)
    logged = len(server.log)
    question = {"client": "C", "channels": [f"$odd:{answer}-{unique}", "$elsewhere"]}

    response = post(server, "subscribe", question, visitor=visitor)

    assert response.status_code == 500
    wait_until(
        lambda: "tests.site.lounge.realtime.answer_oddly failed" in server.log[logged:],
        what="a log entry",
    )
    wait_until(lambda: "Error: " in server.log[logged:], what="its traceback")


# subscribe, for one channel: newer client libraries name no client


def test_token_for_one_channel_is_that_of_the_visitor(server: Server, unique: str) -> None:
    visitor, pk = log_in(server, unique)
    channel = f"$lounge:{unique}"
    answer = post(server, "subscribe", {"channel": channel}, visitor=visitor).json()
    assert answer.keys() == {"token"}
    found = claims(answer["token"])
    assert found.pop("exp") <= time.time() + LIFETIME
    assert found == {"sub": pk, "channel": channel, "info": {"name": visitor.username}}


async def test_token_of_the_visitor_opens_the_channel_to_each_of_its_clients_and_to_no_other(
    server: Server, connect: Connect, unique: str
) -> None:
    visitor, pk = log_in(server, unique)
    channel = f"$lounge:{unique}"
    token = post(server, "subscribe", {"channel": channel}, visitor=visitor).json()["token"]

    for _ in range(2):
        client = await connect(server, user=pk)
        assert (await client.result("subscribe", {"channel": channel, "token": token}))["expires"]
    other = await connect(server, user=f"{pk}0")
    error = await other.error("subscribe", {"channel": channel, "token": token})
    assert error["code"] == 103


@pytest.mark.parametrize(
    ("channel", "status"),
    [
        ("$lounge:another", 403),
        ("lounge:free-1", 403),
        ("$nope:a", 403),
        ("", 403),
        ("$odd:failure", 500),
    ],
)
def test_token_for_one_channel_is_refused(server: Server, channel: str, status: int) -> None:
    visitor, _ = log_in(server)
    response = post(server, "subscribe", {"channel": channel}, visitor=visitor)
    assert response.status_code == status
    assert "ey" not in response.text
