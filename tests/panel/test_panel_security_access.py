"""Who may do what, at every URL of the panel and in both of its homes.

No client is served in this process: what is let through is told that the service is away, and
what is refused is 403.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import URLPattern

from admin_panel.pages.console_methods import METHODS
from admin_panel.standalone import urls
from tests.panel.urls import ASKED_BY_SCRIPTS, CODENAMES, NAMES, url
from tests.panel.urls import signed_in as sign_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured")]

EVERY = set(CODENAMES)
VIEW = {"view"}
PUBLISH = {"publish", "publish_demo"}
OPENED_BY = {
    "overview": VIEW,
    "overview_data": VIEW,
    "overview_hour": VIEW,
    "overview_find": VIEW,
    "node": VIEW,
    "events": VIEW,
    "channels": VIEW,
    "channel": VIEW,
    "channel_token": VIEW,
    "channel_publishers": VIEW,
    "channel_data": VIEW,
    "channel_remove": set(),
    "user": VIEW,
    "user_disconnect": set(),
    "user_unsubscribe": set(),
    "user_close": set(),
    "user_block": set(),
    "user_unblock": set(),
    "frames": set(),
    "frames_data": set(),
    "frames_stop": set(),
    "why": VIEW,
    "publish": PUBLISH,
    "publish_reach": PUBLISH,
    "publish_channels": PUBLISH,
    "pending": VIEW,
    "pending_retry": set(),
    "pending_drop": set(),
    "log": VIEW,
    "namespaces": VIEW,
    "console": VIEW,
    "console_run": VIEW,
}
"""Page or part → the permissions each of which opens it. None: one alone does not."""

OTHER_ROUTES = {"sign_in", "sign_out", "auth", "api"}
"""URLs of the standalone panel that are no pages, and are reached without signing in."""


def opens(client: Client, home: str, name: str) -> bool:
    """Whether a page is opened. Without permission for any page, standalone asks to sign in."""
    ask = client.post if name in ASKED_BY_SCRIPTS else client.get
    response = ask(url(home, name))
    assert response.status_code in (200, 302, 403, 404, 503), (name, response.status_code)
    if response.status_code == 302 and response["Location"].startswith(
        ("/sign-in/", "/publication/")
    ):
        return False  # to sign in, or from the root to a page that is allowed
    return response.status_code != 403


def test_every_page_and_part_has_a_row_in_the_table_of_this_test() -> None:
    assert set(OPENED_BY) == set(NAMES)


def test_standalone_panel_serves_nothing_but_pages_and_its_ways_in() -> None:
    (resolver,) = urls.urlpatterns
    patterns = resolver.url_patterns
    assert not [pattern for pattern in patterns if not isinstance(pattern, URLPattern)]
    assert {getattr(pattern, "name", None) for pattern in patterns} == set(NAMES) | OTHER_ROUTES


@pytest.mark.parametrize("codename", sorted(VIEW | PUBLISH))
def test_one_permission_alone_opens_what_it_is_for(home: str, codename: str) -> None:
    client = sign_in(codename)
    opened = {name for name in NAMES if opens(client, home, name)}
    assert opened == {name for name, openers in OPENED_BY.items() if codename in openers}


def test_all_other_permissions_together_do_not_open_what_is_for_viewers(home: str) -> None:
    client = sign_in(*EVERY - VIEW)
    opened = {name for name in NAMES if opens(client, home, name)}
    assert opened == {name for name, openers in OPENED_BY.items() if openers == PUBLISH}


def test_all_other_permissions_together_do_not_open_what_is_for_publishers(home: str) -> None:
    client = sign_in(*EVERY - PUBLISH)
    opened = {name for name in NAMES if opens(client, home, name)}
    assert opened == {name for name, openers in OPENED_BY.items() if openers != PUBLISH}


def test_superuser_opens_everything(home: str) -> None:
    client = sign_in(superuser=True)
    assert [name for name in NAMES if opens(client, home, name)] == NAMES


def test_staff_without_permissions_open_nothing(home: str) -> None:
    client = sign_in()
    assert not [name for name in NAMES if opens(client, home, name)]


@pytest.mark.parametrize("method", ["get", "head", "post", "put", "patch", "delete", "options"])
def test_visitor_is_sent_to_sign_in_whatever_the_method(home: str, method: str) -> None:
    answers = {name: getattr(Client(), method)(url(home, name)) for name in NAMES}
    place = "/admin/login/?" if home == "admin" else "/sign-in/?"
    assert {
        name: (answer.status_code, answer.content, answer["Location"].partition("?")[0] + "?")
        for name, answer in answers.items()
    } == dict.fromkeys(NAMES, (302, b"", place))


class Action(NamedTuple):
    """A form that changes something."""

    name: str
    needs: set[str]
    """Any one of these, beside `also`."""
    fields: Mapping[str, str] = MappingProxyType({})
    also: str = "view"


def command(method: str, **params: Any) -> dict[str, str]:
    return {"method": method, "params": json.dumps(params)}


COMMANDS: dict[str, tuple[set[str], dict[str, str]]] = {
    "publish": (PUBLISH, command("publish", channel="demo:a", data=1)),
    "broadcast": (PUBLISH, command("broadcast", channels=["demo:a", "$demo:b"], data=1)),
    "unsubscribe": ({"unsubscribe"}, command("unsubscribe", user="42", channel="demo:a")),
    "disconnect": ({"disconnect"}, command("disconnect", user="42")),
    "history_remove": ({"remove_history"}, command("history_remove", channel="demo:a")),
}
"""Console methods that change something, and what they need."""

ACTIONS = {
    "publish": Action("publish", PUBLISH, {"channel": "demo:a", "data": "1"}, also=""),
    "disconnect": Action("user_disconnect", {"disconnect"}),
    "unsubscribe": Action("user_unsubscribe", {"unsubscribe"}),
    "close": Action("user_close", {"disconnect"}),
    "block": Action("user_block", {"block"}, {"minutes": "5"}),
    "unblock": Action("user_unblock", {"block"}),
    "frames": Action("frames", {"trace"}, {"minutes": "5"}),
    "stop": Action("frames_stop", {"trace"}),
    "remove history": Action("channel_remove", {"remove_history"}),
    "retry": Action("pending_retry", {"manage_pending"}),
    "drop": Action("pending_drop", {"manage_pending"}),
    **{
        f"{place} {method}": Action(place, needs, fields)
        for place in ("console", "console_run")
        for method, (needs, fields) in COMMANDS.items()
    },
}

NEEDS = sorted({tuple(sorted(action.needs)) for action in ACTIONS.values()})


def test_every_method_of_the_console_that_changes_something_is_tried_here() -> None:
    assert {method.name for method in METHODS if method.change} == set(COMMANDS)


def submit(client: Client, home: str, actions: Iterable[str]) -> dict[str, int]:
    """Submit the form of each action; returns the statuses of the answers."""
    return {
        what: client.post(url(home, ACTIONS[what].name), ACTIONS[what].fields).status_code
        for what in actions
    }


@pytest.mark.parametrize("codename", sorted(EVERY - VIEW))
def test_action_needs_one_permission_beside_that_of_its_page(home: str, codename: str) -> None:
    client = sign_in("view", codename)
    allowed = [what for what, action in ACTIONS.items() if codename in action.needs]
    assert allowed
    assert 403 not in submit(client, home, allowed).values()


@pytest.mark.parametrize("needs", NEEDS, ids=" ".join)
def test_all_other_permissions_together_allow_no_action(home: str, needs: tuple[str, ...]) -> None:
    client = sign_in(*EVERY - set(needs))
    refused = [what for what, action in ACTIONS.items() if action.needs == set(needs)]
    assert submit(client, home, refused) == dict.fromkeys(refused, 403)
    assert not LogEntry.objects.exists()


def test_action_needs_the_permission_of_its_page_beside_its_own(home: str) -> None:
    client = sign_in(*EVERY - VIEW)
    done = {
        what for what, status in submit(client, home, ACTIONS).items() if status not in (302, 403)
    }
    assert done == {what for what, action in ACTIONS.items() if not action.also}
    assert not LogEntry.objects.exists()


CONFINED = {
    "another namespace": "chat:a",
    "no namespace": "a",
    "that is no boundary": "demo",
    "behind another one": "chat:demo:a",
    "behind nothing": ":demo:a",
    "private twice": "$$demo:a",
    "private without a namespace": "$demo",
    "another case": "Demo:a",
    "a space before": " demo:a",
    "letters that look alike": "d\u0435mo:a",
    "of full width": "\uff44emo:a",
    "a colon that looks alike": "demo\uff1aa",
    "a boundary that cannot be seen": "demo\u200b:a",
    "written from right to left": "\u202edemo:a",
    "a null": "demo\0:a",
    "a line break": "chat:a\ndemo:a",
}
"""Channels that are not of the namespace demo, whatever they look like."""


FORMS = {"publish": "{}", "with one that is allowed": "demo:a {}", "confirmed": "{}"}
"""What is sent by the page for publishing → its channels."""


@pytest.mark.parametrize("form", FORMS)
def test_permission_of_a_namespace_is_not_for_a_name_that_looks_like_it(
    home: str, form: str
) -> None:
    client = sign_in("view", "publish_demo")
    refused = {}
    for case, channel in CONFINED.items():
        fields = {"channel": FORMS[form].format(json.dumps(channel)), "data": '"kept"', form: "x"}
        response = client.post(url(home, "publish"), fields)
        is_no_name = b"null character" in response.content
        assert is_no_name or b"You may not publish into this channel." in response.content
        assert b"&quot;kept&quot;" in response.content
        refused[case] = "no name" if is_no_name else response.status_code

    assert refused == dict.fromkeys(CONFINED, 403) | {"a null": "no name"}
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("name", ["console", "console_run"])
def test_nor_do_commands_take_that_name_for_one_of_the_namespace(home: str, name: str) -> None:
    client = sign_in("view", "publish_demo")
    statuses = {}
    for case, channel in CONFINED.items():
        commands = [
            command("publish", channel=channel, data=1),
            *(
                command("broadcast", channels=channels, data=1)
                for channels in ([channel], ["demo:a", channel], ["", channel])
            ),
        ]
        statuses[case] = {client.post(url(home, name), each).status_code for each in commands}

    assert statuses == {case: {403} for case in CONFINED}
    assert not LogEntry.objects.exists()


def test_what_may_not_be_published_into_is_answered_alike_whether_it_exists_or_not(
    home: str,
) -> None:
    client = sign_in("publish_demo")
    texts = {
        client.post(url(home, "publish_reach"), {"channel": channel})
        .json()["html"]
        .replace(channel, "")
        for channel in ("chat:known", "unknown:x", "top", "gone:\u00fc")
    }
    assert len(texts) == 1
