"""The panel's console in a served site: any command of the server API, by whoever may run it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import httpx
import pytest

from admin_panel.pages.console import LONGEST
from tests.live.panel_site import token_for
from tests.live.panel_staff import Staff, logged, post
from tests.panel.paths import page_path
from tests.protocol_client import ProtocolClient, open_client
from tests.ready_site import ReadySite

PATH = page_path("console")
RUN = page_path("console/run")
JOIN = 1
"""Type of the push that tells of a new subscriber, of oneself too."""


@pytest.fixture
async def subscriber(site: ReadySite, unique: str) -> AsyncIterator[ProtocolClient]:
    """A user called `unique` in the channel `demo:<unique>`."""
    token = token_for(site, unique, f"demo:{unique}")
    async with open_client(site.socket, token=token) as client:
        assert (await client.push())["type"] == JOIN
        yield client


def run(browser: httpx.Client, method: str, params: object) -> httpx.Response:
    """Run a command as the form without JavaScript does."""
    text = params if isinstance(params, str) else json.dumps(params)
    return post(browser, PATH, method=method, params=text)


def response_of(html: str) -> Any:
    """The response on the page."""
    return json.loads(unescape(html.partition('id="response"')[2].split("<code>")[1].split("<")[0]))


def request_of(html: str) -> Any:
    """The request beside it."""
    part = html.partition('id="request-title"')[2]
    return json.loads(unescape(part.split("<code>")[1].split("<")[0]))


# what is answered


async def test_reading_shows_request_and_response_and_the_time_it_took(
    operator: httpx.Client, subscriber: ProtocolClient, unique: str
) -> None:
    params = {"channel": f"demo:{unique}"}
    response = run(operator, "presence", params)
    assert response.history == []
    assert request_of(response.text) == {"method": "presence", "params": params}
    presence = {subscriber.client: {"user": unique, "client": subscriber.client}}
    assert response_of(response.text) == {"result": {"presence": presence}}
    assert re.search(r'<span id="duration">[\d,.]+ ms</span>', response.text)


ANSWERS = [
    ("channels", "", "result"),
    ("history", '{"channel": "demo:x"}', {"result": {"publications": []}}),
    ("history", '{"channel": "x"}', {"error": {"code": 108, "message": "not available"}}),
    ("presence", '{"channel": "no:x"}', {"error": {"code": 102, "message": "namespace not found"}}),
    ("presence", "", {"error": {"code": 107, "message": "bad request"}}),
    ("disconnect", '{"user": ""}', {"error": {"code": 107, "message": "bad request"}}),
]
"""Method, params, and the answer of the server API (protocol reference, 8)."""


@pytest.mark.parametrize(("method", "params", "answer"), ANSWERS)
def test_answer_is_that_of_the_server_api(
    operator: httpx.Client, method: str, params: str, answer: Any
) -> None:
    found = response_of(run(operator, method, params).text)
    if answer == "result":
        assert list(found) == ["result"]
    else:
        assert found == answer


BROKEN = [
    ('{"channel": }', "line 1, column 13"),
    ('{"channel":\n "a"', "line 2, column 5"),
    ('{"channel": "a"} {"method": "disconnect"}', "line 1, column 18"),
    ('{"channel": "a"}}, "method": "disconnect"', "line 1, column 17"),
]


@pytest.mark.parametrize(("params", "place"), BROKEN)
def test_params_that_are_no_json_are_refused_with_their_place_and_kept(
    operator: httpx.Client, params: str, place: str
) -> None:
    html = run(operator, "presence", params).text
    assert f"Not valid JSON at {place}" in html
    area = html.partition("<textarea")[2].partition("</textarea>")[0]
    assert params in unescape(area).replace("\r", "")
    assert 'id="response"' not in html


async def test_publication_reaches_a_subscriber_and_is_shown_after_a_redirect(
    site: ReadySite, operator: httpx.Client, subscriber: ProtocolClient, unique: str
) -> None:
    params = f'{{"channel": "demo:{unique}", "data": {{"n": 1.50}}}}'

    response = run(operator, "publish", params)

    assert (await subscriber.publication())["data"] == {"n": 1.5}
    assert '{"n":1.50}' in str(subscriber.frames[-1])
    assert response.history[0].status_code == 302
    assert response_of(response.text) == {"result": {}}
    assert request_of(response.text)["method"] == "publish"
    area = response.text.partition("<textarea")[2].partition("</textarea>")[0]
    assert params in unescape(area)
    assert 'id="response"' not in operator.get(PATH).text, "it is shown once"
    [entry] = logged(site, unique)
    assert entry == ("operator", "publication", f"demo:{unique}", 'Published: {"n": 1.50}')


LOGGED = [
    ("broadcast", {"channels": ["demo:{}"], "data": 1}, ("publication", "demo:{}", "Published: 1")),
    ("disconnect", {"user": "{}"}, ("connection", "{}", "Disconnected")),
    (
        "unsubscribe",
        {"user": "{}", "channel": "demo:{}"},
        ("connection", "{}", "Unsubscribed: demo:{}"),
    ),
    ("unsubscribe", {"user": "{}"}, ("connection", "{}", "Unsubscribed")),
    ("history_remove", {"channel": "demo:{}"}, ("channel", "demo:{}", "History removed")),
]


@pytest.mark.parametrize(("method", "params", "entry"), LOGGED)
def test_what_changes_something_is_an_entry_of_the_log(
    site: ReadySite,
    operator: httpx.Client,
    unique: str,
    method: str,
    params: dict[str, Any],
    entry: tuple[str, ...],
) -> None:
    response = run(operator, method, json.dumps(params).replace("{}", unique))
    assert response_of(response.text) == {"result": {}}
    expected = tuple(word.replace("{}", unique) for word in entry)
    assert logged(site, unique) == [("operator", *expected)]


async def test_broadcast_that_ends_at_a_wrong_channel_is_logged_for_those_before_it(
    site: ReadySite, operator: httpx.Client, subscriber: ProtocolClient, unique: str
) -> None:
    channels = [f"demo:{unique}", f"nope:{unique}", f"demo:{unique}-after"]
    response = run(operator, "broadcast", {"channels": channels, "data": 1})
    assert (await subscriber.publication())["data"] == 1
    assert response_of(response.text)["error"]["code"] == 102
    assert [entry[2] for entry in logged(site, unique)] == channels[:1]


async def test_command_of_the_script_is_answered_in_json(
    operator: httpx.Client, subscriber: ProtocolClient, unique: str
) -> None:
    params = json.dumps({"channel": f"demo:{unique}", "data": "hi"})
    answer = post(operator, RUN, method="publish", params=params).json()
    assert answer["ok"] is True
    assert response_of(answer["html"]) == {"result": {}}
    assert (await subscriber.publication())["data"] == "hi"
    refused = post(operator, RUN, method="publish", params="{").json()
    assert "line 1, column 2" in refused["errors"]["params"]
    assert operator.get(RUN).status_code == 405


# who may


ELSEWHERE = [
    ("publish", '{"channel": "other-U", "data": 1}'),
    ("publish", '{"Channel": "other-U", "data": 1}'),
    ("publish", '{"channel": "demo:U", "CHANNEL": "other-U", "data": 1}'),
    ("publish", '{"channel": "demo:U", "channel": "other-U", "data": 1}'),
    ("publish", '{"x": 1, "channel": "demo:U", "channe\\u006c": "other-U", "data": 1}'),
    ("broadcast", '{"channels": ["demo:U", "other-U"], "data": 1}'),
    ("broadcast", '{"CHANNELS": ["demo:U", ""], "data": 1}'),
]
"""Commands about a channel beside one of the namespace that is allowed, however they are spelt."""


@pytest.mark.parametrize(("method", "params"), ELSEWHERE)
def test_permission_of_a_namespace_is_for_its_channels_only(
    site: ReadySite, staff: Staff, unique: str, method: str, params: str
) -> None:
    response = run(staff["demo"], method, params.replace("U", unique))
    assert response.status_code == 403
    assert f"You may not run this {method}." in response.text
    assert logged(site, unique) == []


# what is hostile, or much


def test_null_character_in_a_name_is_no_crash(
    site: ReadySite, operator: httpx.Client, unique: str
) -> None:
    response = run(operator, "disconnect", {"user": f"{unique}\0"})
    assert response_of(response.text) == {"result": {}}
    [entry] = logged(site, unique)
    assert entry[2] == f"{unique}\N{SYMBOL FOR NULL}"


async def test_response_that_is_very_long_is_cut_and_says_so(
    site: ReadySite, operator: httpx.Client, unique: str
) -> None:
    site.publish(f"demo:{unique}", *["x" * (LONGEST // 8)] * 10)
    html = run(operator, "history", {"channel": f"demo:{unique}"}).text
    assert "Only the beginning is shown" in html
    shown = html.partition('id="response"')[2].split("<code>")[1].split("</code>")[0]
    assert len(unescape(shown)) == LONGEST
