"""The panel's page "Why?": every check, the option that decides, and tokens that are pasted."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from admin_panel import people, service
from admin_panel.people import Now
from admin_panel.why_words import CHECKS
from realtime.auth import issue
from realtime.clients import checks
from realtime.clients.checks import Checks
from realtime.cluster.survey import ClientReport, ConnectionsAnswer, SurveyResult
from realtime.config.reader import load
from tests.panel.paths import page_path

pytestmark = pytest.mark.django_db

SECRET = "a secret of forty bytes, to sign tokens."
NAMESPACES: list[dict[str, Any]] = [
    {"name": "news", "anonymous": True},
    {"name": "chat", "publish": True, "subscribe_to_publish": True, "history_size": 5},
    {"name": "kept", "history_size": 5, "history_lifetime": 60},
]
LINE = re.compile(r'<li data-outcome="([^"]+)">(.*?)</li>\s*(?=<li data-|</ol>)', re.DOTALL)
TAG = re.compile(r"<[^>]*>")


@pytest.fixture(autouse=True)
def _alone(settings: Settings) -> None:
    """A site of which no process serves clients, and the options are known."""
    settings.REALTIME = {
        "engine": "dummy",
        "namespaces": NAMESPACES,
        "token_hmac_secret_key": SECRET,
        "allowed_origins": ["https://example.com"],
    }


def words(html: str) -> str:
    return " ".join(unescape(TAG.sub(" ", html)).split())


def page(client: Client, *, status: int = 200, **query: Any) -> str:
    response = client.get(page_path("why", **query))
    assert response.status_code == status
    return response.content.decode()


def lines(html: str) -> list[tuple[str, str]]:
    """Outcome and text of every check on the page."""
    return [(outcome, words(text)) for outcome, text in LINE.findall(html)]


def refusal(html: str) -> str:
    """The text of the check that refuses."""
    [text] = [text for outcome, text in lines(html) if outcome == "refused"]
    return text


def verify(client: Client, token: str, channel: str = "$chat:a") -> str:
    response = client.post(page_path("why", user="17", channel=channel), {"token": token})
    assert response.status_code == 200
    assert token not in response.content.decode()
    return words(response.content.decode().partition('id="why-judgement"')[2].partition("<form")[0])


def test_every_check_has_words() -> None:
    tables = [table for table in vars(checks).values() if isinstance(table, Checks)]
    names = {check.name for table in tables for check in table.all}
    assert len(tables) > 4
    assert names <= CHECKS.keys()


def test_checks_after_the_one_that_refuses_are_not_asked(admin_client: Client) -> None:
    html = page(admin_client, user="17", channel="chat:a", action="history")
    outcomes = [outcome for outcome, _text in lines(html)]
    assert outcomes.count("refused") == 1
    at = outcomes.index("refused")
    assert set(outcomes[at + 1 :]) == {"not asked"}
    assert "not asked" not in outcomes[:at]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"user": "", "channel": "chat:a", "action": "subscribe"}, ("103", "anonymous: off")),
        ({"user": "17", "channel": "nope:a"}, ("102", "news, chat, kept", "settings")),
        (
            {"user": "17", "channel": "news:a", "action": "publish"},
            ("103", "publish : off", "in the namespace news", "default"),
        ),
        (
            {"user": "17", "channel": "chat:a", "action": "publish"},
            ("103", "subscribe_to_publish : on", "settings"),
        ),
        (
            {"user": "17", "channel": "chat:a", "action": "history"},
            ("108", "history_size : 5", "settings", "history_lifetime : 0", "default"),
        ),
        ({"user": "17", "channel": "$chat:a", "action": "subscribe"}, ("103", "private")),
        ({"user": "18", "channel": "chat:a#17", "action": "subscribe"}, ("103", "in its name")),
    ],
    ids=["anonymous", "namespace", "publish", "subscribed", "history", "private", "listed"],
)
def test_deciding_option_is_named_with_its_source(
    admin_client: Client, query: dict[str, Any], told: tuple[str, ...]
) -> None:
    text = refusal(page(admin_client, **query)).replace(" :", ":")
    for each in told:
        assert each.replace(" :", ":") in text


def test_options_of_a_namespace_are_read_from_the_environment_too(
    admin_client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_NAMESPACES", json.dumps(NAMESPACES))
    settings.REALTIME = {"engine": "dummy"}
    text = refusal(page(admin_client, user="17", channel="chat:a", action="publish"))
    assert "subscribe_to_publish : on in the namespace chat environment" in text
    assert "allow_publish_for_client" not in text


def test_link_leads_to_the_option(admin_client: Client) -> None:
    html = page(admin_client, user="17", channel="chat:a", action="publish")
    [anchor] = set(re.findall(r'namespaces/#([\w-]*subscribe_to_publish)"', html))
    options = admin_client.get(page_path("namespaces")).content.decode()
    assert f'id="{anchor}"' in options


def test_operator_says_whether_the_client_is_subscribed(admin_client: Client) -> None:
    query: dict[str, Any] = {"user": "17", "channel": "chat:a", "action": "publish"}
    assert refusal(page(admin_client, **query))
    outcomes = {outcome for outcome, _ in lines(page(admin_client, **query, subscribed="yes"))}
    assert "refused" not in outcomes


def test_without_the_service_the_options_still_answer(
    admin_client: Client, settings: Settings
) -> None:
    settings.REALTIME = {"namespaces": NAMESPACES}
    html = page(admin_client, status=503, user="17", channel="chat:a", action="publish")
    assert "103" in refusal(html)
    assert "is not known" in words(html)
    [outcome] = {outcome for outcome, text in lines(html) if "The user is not blocked" in text}
    assert outcome == "unknown"


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (Now((), None, total=10_000), "The user has 10000 connections."),
        (Now((), None, total=3, missing=["frozen"]), "These nodes did not answer: frozen."),
    ],
    ids=["more than are reported", "a silent node"],
)
def test_number_of_connections_is_told_where_it_is_known(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, now: Now, told: str
) -> None:
    monkeypatch.setattr(people, "now", lambda _user, _channel: now)
    html = page(admin_client, user="17", channel="chat:a")
    assert words(html.partition('id="why-assumed">')[2]).startswith(told)


@pytest.mark.parametrize(
    ("channels", "told"),
    [
        ([["a"], ["b", "c"]], True),
        ([["a"], ["b"]], False),
        ([["a", "chat:a"], ["b"]], False),
        ([], False),
    ],
    ids=["as many as one may", "fewer", "this one is among them", "not connected"],
)
def test_user_with_as_many_subscriptions_as_one_may_have_is_refused_for_that(
    admin_client: Client,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    channels: list[list[str]],
    told: bool,
) -> None:
    settings.REALTIME = settings.REALTIME | {"user_channel_limit": 3}
    reports = [ClientReport("c", "websocket", 1.0, len(names), names, None) for names in channels]
    surveyed = SurveyResult([ConnectionsAnswer("U", "n", len(reports), reports)], [])
    monkeypatch.setattr(service, "connections", lambda _user: surveyed)
    html = page(admin_client, user="17", channel="chat:a", action="subscribe")
    full = "The user has as many subscriptions at this node as one may."
    assert (full in words(html)) is told


@pytest.mark.parametrize(
    ("counts", "outcome", "told"),
    [
        ([], "unknown", "It cannot be said: no connection of the user is known."),
        ([2, 0], "passed", ""),
        ([3, 2], "unknown", "Connections that have room: 1 of 2."),
        ([3, 7], "refused", "Connections that have room: 0 of 2."),
    ],
    ids=["not connected", "room", "one is full", "all are full"],
)
def test_limit_of_a_connection_is_that_of_the_connections_there_are(
    admin_client: Client,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    counts: list[int],
    outcome: str,
    told: str,
) -> None:
    settings.REALTIME = settings.REALTIME | {"client_channel_limit": 3}
    names = [[f"c{number}" for number in range(count)] for count in counts]
    reports = [ClientReport("c", "websocket", 1.0, len(each), each, None) for each in names]
    surveyed = SurveyResult([ConnectionsAnswer("U", "n", len(reports), reports)], [])
    monkeypatch.setattr(service, "connections", lambda _user: surveyed)

    html = page(admin_client, user="17", channel="news:a", action="subscribe")

    of_limit = re.compile("The connection has (room for one more|as many)")
    [found] = [line for line in lines(html) if of_limit.search(line[1])]
    assert found[0] == outcome
    assert told in found[1]


def test_number_of_connections_without_a_user_is_not_known(admin_client: Client) -> None:
    html = page(admin_client, user="", channel="chat:a")
    told = words(html.partition('id="why-assumed">')[2])
    assert told.startswith("The client is taken for one that is not subscribed")


def test_markup_in_names_is_text(admin_client: Client) -> None:
    html = page(admin_client, user="<b>x</b>", channel="<i>y</i>", subscribed="<u>", action="<s>")
    assert not re.search("<(b|i|u|s)>", html)


# tokens

CONFIG = load({"token_hmac_secret_key": SECRET})


def opens(user: str, channel: str) -> str:
    return issue.user_subscription_token(CONFIG, user, channel, ttl=6000)


TOKENS: dict[str, tuple[str, tuple[str, ...]]] = {
    "right": (opens("17", "$chat:a"), ("signature and times are right",)),
    "other user": (opens("18", "$chat:a"), ("does not open this channel", "for the user")),
    "other channel": (opens("17", "$chat:b"), ("does not open this channel", "for the channel")),
    "connection": (
        issue.connection_token(CONFIG, "17", ttl=6000),
        ("A connection token", '"sub": "17"', "It expires"),
    ),
    "nonsense": ("nonsense", ("not valid", "not in compact form")),
    "signature": (
        issue.connection_token(load({"token_hmac_secret_key": "x" * 40}), "17"),
        ("not valid", "signature"),
    ),
    "expired": (
        issue.connection_token(CONFIG, "17", ttl=-60),
        ("not valid", "exp has passed"),
    ),
    "large": ("a" * 70_000, ("not valid", "too large")),
}


@pytest.mark.parametrize(("token", "told"), TOKENS.values(), ids=TOKENS)
def test_token_is_judged(admin_client: Client, token: str, told: tuple[str, ...]) -> None:
    text = verify(admin_client, token)
    assert [each for each in told if each not in text] == []
