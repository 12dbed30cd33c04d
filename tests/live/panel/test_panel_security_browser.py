"""Hostile data everywhere, in a real browser: nothing of it runs, and the policy blocks nothing.

Whatever a page shows can be made by somebody else: channel names, user IDs, infos, payloads,
names of nodes, what others published by hand.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from urllib.parse import urlencode

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.conftest import connection_token
from tests.live.panel_watch import ADDRESS, MARKUP, Watched
from tests.live.standalone_site import serve_panel
from tests.panel.standalone_parts import PASSWORD
from tests.protocol_client import open_client
from tests.server import Server

USER = f"\u202e{MARKUP}\U0001f600"
"""From right to left, and with an emoji."""


@pytest.fixture(scope="module")
def server(serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The ready site with its panel, at a node with such a name, too."""
    return serve_panel(serve, tmp_path_factory, SERVICE_NAME=f"node{MARKUP}")


@pytest.fixture(scope="module")
def signed_in(server: Server, clean_browser: Chrome) -> Watched:
    """A browser in which an operator is signed in."""
    page = Watched(clean_browser, server.address)
    page.open("/sign-in/")
    clean_browser.find_element(By.NAME, "password").send_keys(PASSWORD + "\n")
    page.until(lambda: clean_browser.find_elements(By.ID, "logout-form"), "signed in")
    return page


@pytest.fixture
def page(signed_in: Watched) -> Iterator[Watched]:
    """The browser. Nothing may have been run, blocked or loaded at the end."""
    yield signed_in
    assert signed_in.found() == []
    signed_in.run("localStorage.clear(); sessionStorage.clear()")


@pytest.fixture
def channel(unique: str) -> str:
    """A channel with presence, joins and history."""
    return f"demo:{unique}{MARKUP}{ADDRESS}"


@pytest.fixture
def user(unique: str) -> str:
    return f"{unique}{USER}{ADDRESS}"


@pytest.fixture
async def guests(server: Server, channel: str, user: str) -> AsyncIterator[AsyncExitStack]:
    """A client of that user in that channel; the stack takes more of them."""
    async with AsyncExitStack() as stack:
        token = connection_token(user, channels=[channel], info={MARKUP: ADDRESS})
        client = await stack.enter_async_context(open_client(server.socket, token=token))
        await client.push()
        yield stack


def path(page: str, **query: str) -> str:
    return f"/{page}" + (f"?{urlencode(query)}" if query else "")


def test_watch_sees_what_would_run_and_what_the_policy_blocks(signed_in: Watched) -> None:
    signed_in.open("/channels/")
    signed_in.run("document.getElementById('content-main').innerHTML = arguments[0]", MARKUP)
    loaded = "performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/hit'))"
    script = f"return window.hits.length >= 2 && {loaded}"
    signed_in.until(lambda: signed_in.run(script), "two violations, and a picture")

    found = " ".join(signed_in.found())

    for word in ("script-src-attr", "img", "script", "onerror=", "onload=", "/hit"):
        assert word in found
    signed_in.open("/channels/")


def test_overview_shows_the_name_of_a_node_as_text(page: Watched) -> None:
    page.open("/")
    page.run("window.before = document.getElementById('nodes')")
    # drawn anew by the script
    page.until(lambda: page.run("return !window.before.isConnected"), "a newer table")
    assert page.shows("#nodes bdi", f"node{MARKUP}")


@pytest.mark.usefixtures("guests")
def test_channels_are_text_in_list_and_search(page: Watched, channel: str, unique: str) -> None:
    page.open(path("channels/", q=unique))
    assert page.shows("#channels bdi", channel)

    page.open(path("channels/", q=MARKUP))

    assert page.shows("#q", MARKUP)
    assert page.shows("#channels bdi", channel)
    page.open(path("channels/", q=f"{MARKUP}-nothing"))
    assert page.shows(".panel-empty bdi", f"{MARKUP}-nothing")
    page.click(".panel-empty a")
    page.until(lambda: page.shows(".panel-subject", f"{MARKUP}-nothing"), "its page")


async def test_channel_page_shows_all_of_it_as_text(
    page: Watched, guests: AsyncExitStack, server: Server, channel: str, user: str
) -> None:
    data = {MARKUP: [ADDRESS, {"__proto__": {"hit": MARKUP}}], "constructor": "x" * 700}
    server.publish(channel, data)
    page.open(path("channel/", channel=channel))
    page.until(lambda: page.shows("#tail-state", "Live"), "the live tail")

    server.publish(channel, data)
    server.publish(channel, MARKUP)
    token = connection_token(f"{user}-2", channels=[channel], info=MARKUP)
    await guests.enter_async_context(open_client(server.socket, token=token))
    page.until(lambda: page.shows("#tail-list [data-kind=join]", f"{user}-2"), "the join")

    # json.dumps escapes neither quotes of one kind nor angle brackets
    assert page.shows("#tail-list pre", json.dumps(MARKUP))
    assert page.shows("#tail-list pre", json.dumps(ADDRESS))
    page.fill("#tail-filter", MARKUP)
    page.click("#tail-copy")
    page.click("#channel-refresh")
    page.until(lambda: page.shows("#channel-clients bdi", f"{user}-2"), "the clients, anew")
    assert page.shows("#channel-clients pre", "javascript:hit(4)")
    assert page.shows("#channel-history pre", json.dumps(MARKUP))
    assert page.shows(".panel-subject", channel)
    assert page.run("return document.title").startswith(channel)
    links = page.run("return [...document.querySelectorAll('#tail-list a')].map((a) => a.href)")
    assert links
    assert all(link.startswith(f"{server.address}/user/?user=") for link in links)


@pytest.mark.parametrize("name", [f"no{MARKUP}:x", f"x{MARKUP}\u202e", ADDRESS, ""])
def test_name_of_no_channel_or_of_a_node_is_text(page: Watched, name: str) -> None:
    page.open(path("channel/", channel=name) if name else "/namespaces/")
    assert page.shows(".panel-subject" if name else "code", name or f"node{MARKUP}")


@pytest.mark.usefixtures("guests")
@pytest.mark.parametrize("part", ["user/", "user/disconnect/", "user/unsubscribe/"])
def test_user_is_text_on_every_page_about_it(
    page: Watched, channel: str, user: str, part: str
) -> None:
    page.open(path(part, user=user, channel=channel))
    assert page.shows("bdi", user)
    if part == "user/":
        assert page.shows("#user-connections bdi", channel)
        assert page.shows("#user-connections pre", json.dumps({MARKUP: ADDRESS})[1:-1][:40])
        assert page.shows("#user-connections bdi", f"node{MARKUP}")


def test_message_about_a_user_is_text(page: Watched, user: str) -> None:
    page.open(path("user/disconnect/", user=user))
    page.click("#content-main form [type=submit]")
    page.until(lambda: page.shows(".messagelist", user), "the message")
    assert page.shows("bdi", user)


@pytest.mark.usefixtures("guests")
def test_publish_page_shows_all_of_it_as_text(page: Watched, channel: str, unique: str) -> None:
    data = json.dumps({MARKUP: ADDRESS})
    page.open("/publication/")
    page.fill("[name=channel]", json.dumps(channel))
    page.fill("[name=data]", data)
    page.until(lambda: page.shows("#reach bdi", channel), "what it reaches")
    page.fill("#add-channel", unique)
    page.until(lambda: page.shows("#known-channels option", channel), "the suggestion")
    page.click("#publish-form [type=submit]")
    page.until(lambda: page.shows(".messagelist", channel), "the message")
    assert page.found() == []

    # by another one who looks at the page
    page.open("/publication/")
    assert page.shows("#recent bdi", channel)
    assert page.shows("#recent code", data[:100])
    page.click("#recent a")
    page.until(lambda: page.shows("#reach bdi", channel), "what it would reach again")
    assert page.found() == []

    # a draft, and a refusal of many channels with their names
    page.fill("[name=data]", f"{MARKUP}\n{ADDRESS}")
    page.open("/publication/")
    page.until(lambda: page.run("return !document.getElementById('draft').hidden"), "the draft")
    page.click("#draft [data-action=restore]")
    assert page.shows("[name=data]", MARKUP)
    page.fill("[name=channel]", f"{json.dumps('no:' + MARKUP)} {json.dumps(channel)}")
    page.run("document.getElementById('publish-form').elements.data.value = '1'")
    page.run("document.getElementById('publish-form').submit()")
    page.until(lambda: page.shows(".errorlist", f"no:{MARKUP}"), "the refusal")


def test_question_before_a_large_publication_is_text(page: Watched, unique: str) -> None:
    names = [f"demo:{unique}-{number}{MARKUP}" for number in range(11)]
    page.open("/publication/")
    page.fill("[name=channel]", "\n".join(map(json.dumps, names)))
    page.fill("[name=data]", json.dumps(MARKUP))

    page.click("#publish-form [type=submit]")
    page.until(lambda: page.shows("dialog[open] bdi", names[0]), "the question")
    assert page.found() == []
    page.run("document.querySelector('dialog').close()")
    page.run("document.getElementById('publish-form').submit()")
    page.until(lambda: page.shows("#confirm-form bdi", names[0]), "the page that asks")

    assert page.shows("#confirm-form pre", MARKUP[2:])
    assert page.shows("#confirm-form [name=data]", json.dumps(MARKUP))


@pytest.mark.usefixtures("guests")
def test_console_shows_all_of_it_as_text(
    page: Watched, server: Server, channel: str, user: str
) -> None:
    server.publish(channel, {MARKUP: ADDRESS})
    page.open("/console/")
    for method in ("history", "presence"):
        page.fill("[name=method]", method)
        page.fill("[name=params]", json.dumps({"channel": channel}))
        page.click("#console-form [type=submit]")
        page.until(lambda method=method: page.shows("#history code", method), "the command")
    assert page.shows("#response", "hit(1)")
    assert page.shows("#history code", json.dumps({"channel": channel}))

    page.fill("[name=params]", MARKUP)
    page.click("#console-form [type=submit]")
    page.until(lambda: page.shows(".field-params .errorlist", "Not valid JSON"), "the refusal")
    # a method that no option names, as another page could send it
    page.run("document.querySelector('[name=method]').options[0].value = arguments[0]", MARKUP)
    page.run("document.querySelector('[name=method]').selectedIndex = 0")
    page.click("#console-form [type=submit]")
    page.until(lambda: page.shows(".field-method .errorlist", MARKUP), "the refusal of the method")
    assert page.found() == []

    page.open("/console/")
    page.click("#history li button")
    assert page.shows("[name=params]", json.dumps({"channel": channel}))


@pytest.mark.parametrize(
    "query", [f"next=/{MARKUP}", "next=javascript:hit(4)", "next=//evil.example/"]
)
def test_sign_in_page_takes_nothing_from_its_address(page: Watched, query: str) -> None:
    page.open("/namespaces/")  # it asks for nothing more, as the overview does
    page.run("document.getElementById('logout-form').submit()")
    page.until(lambda: page.browser.find_elements(By.ID, "sign-in-form"), "the sign-in page")
    page.open(f"/sign-in/?{query}")
    assert page.found() == []

    page.browser.find_element(By.NAME, "password").send_keys(PASSWORD + "\n")
    page.until(lambda: not page.browser.find_elements(By.ID, "sign-in-form"), "the next page")

    assert page.browser.current_url.startswith(page.address + "/")
    page.open("/")
