"""The live tail of the channel page, in a real browser."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from django.utils.crypto import salted_hmac
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from admin_panel.pages.channel import TOKEN_TTL
from realtime.auth import issue
from tests.browser import console
from tests.conftest import connection_token
from tests.live.api_methods import result
from tests.live.panel_site import OPERATOR, PASSWORD, sign_in
from tests.live.panel_staff import post
from tests.live.publish_page import send
from tests.live.tail_page import TailPage
from tests.panel.paths import page_path
from tests.protocol_client import open_client

HELD = 500
"""Entries that a paused tail keeps."""


@pytest.fixture
def page(tail_page: TailPage) -> TailPage:
    """The page, not opened yet."""
    return tail_page


# what comes


def test_publications_come_newest_first_with_offsets_and_tags(page: TailPage, unique: str) -> None:
    page.open(f"demo:{unique}")
    page.publish({"n": 1})
    tags = {"size": "<b>XL</b>", "lang": "en"}
    result(page.server.server, "publish", channel=page.channel, data={"n": 2}, tags=tags)
    page.until(lambda: len(page.data) == 2, "both publications")
    assert page.data == ['{"n": 2}', '{"n": 1}']
    assert page.texts("#tail-list .panel-offset") == ["#2", "#1"]
    assert page.texts("#tail-empty") == []
    assert page.texts("#tail-list [data-part=tag]") == ["lang=en", "size=<b>XL</b>"]
    page.element("tail-filter").send_keys("LANG=e")
    assert page.data == ['{"n": 2}']


async def test_joins_and_leaves_come_with_the_user(page: TailPage, unique: str) -> None:
    page.open(f"demo:{unique}")
    token = connection_token(unique, channels=[page.channel])
    async with open_client(page.server.socket, token=token) as client:
        page.until(lambda: page.kinds == ["join"], "the join")
        connection = client.client
    page.until(lambda: page.kinds == ["leave", "join"], "the leave")
    assert page.texts('#tail-list [data-part="user"]') == [unique, unique]
    assert page.texts('#tail-list [data-part="client"]') == [connection, connection]


async def test_tail_itself_is_no_subscriber_and_nobody_is_told_of_it(
    page: TailPage, unique: str
) -> None:
    channel = f"demo:{unique}"
    token = connection_token(unique, channels=[channel])
    async with open_client(page.server.socket, token=token) as client:
        assert (await client.push())["type"] == 1, "its own join"
        page.open(channel)
        await client.quiet()
        assert page.texts("#channel-summary .panel-tiles dd")[:2] == ["1", "1"]


def test_long_payload_is_folded_and_opens_indented(page: TailPage, unique: str) -> None:
    page.open(f"demo:{unique}")
    rows = [{"id": number} for number in range(100)]
    page.publish(rows)
    page.until(lambda: page.texts("#tail-list summary"), "the fold")
    assert page.data == []
    page.browser.find_element(By.CSS_SELECTOR, "#tail-list summary").click()
    assert page.data == [json.dumps(rows, indent=2)]


# pause, filter, clear, copy


def test_paused_tail_counts_what_waits_and_shows_it_when_it_goes_on(
    page: TailPage, unique: str
) -> None:
    page.open(f"demo:{unique}")
    page.publish("before")
    page.until(lambda: page.data == ['"before"'], "the first publication")

    page.element("tail-pause").click()
    page.publish("one", "two")
    page.until(lambda: page.element("tail-held").text == "Waiting: 2", "the count")
    assert page.data == ['"before"']

    page.element("tail-pause").click()
    assert page.data == ['"two"', '"one"', '"before"']
    assert page.element("tail-held").text == ""


def test_paused_tail_keeps_the_newest_of_very_many(page: TailPage, unique: str) -> None:
    page.open(f"demo:{unique}")
    page.element("tail-pause").click()

    page.publish(*range(HELD + 7))

    waiting = f"Waiting: {HELD + 7}, of which the newest {HELD} are kept"
    page.until(lambda: page.element("tail-held").text == waiting, "the count")
    page.element("tail-pause").click()
    numbers = page.browser.execute_script(
        "return [...document.querySelectorAll('#tail-list pre')].map((e) => e.textContent)"
    )
    assert numbers == [str(number) for number in range(HELD + 6, 6, -1)]
    script = "return document.querySelector('#tail-list > :last-child').textContent"
    assert page.browser.execute_script(script).strip().endswith(": 7")


def test_list_does_not_grow_beyond_its_bound(page: TailPage, unique: str) -> None:
    page.open(f"demo:{unique}")
    page.publish(*range(HELD + 20))
    page.until(lambda: page.data[:1] == [str(HELD + 19)], "the last publication")
    assert len(page.kinds) <= HELD + 1


def test_filter_hides_what_does_not_contain_the_text_and_clear_empties_the_list(
    page: TailPage, unique: str
) -> None:
    page.open(f"demo:{unique}")
    page.publish("apple", "pear")
    page.until(lambda: len(page.data) == 2, "both publications")

    page.element("tail-filter").send_keys("APPLE")
    assert page.data == ['"apple"']
    page.publish("apple pie", "plum")

    page.until(lambda: page.element("tail-count").text == "Shown: 2 of 4", "the count")
    assert page.data == ['"apple pie"', '"apple"']
    page.element("tail-filter").send_keys(Keys.ESCAPE)  # empties a search field
    assert len(page.data) == 4
    page.element("tail-clear").click()
    assert page.data == []
    assert page.texts("#tail-empty") == ["Nothing has arrived yet."]


NOTE_WORDS = """
    window.said = [];
    for (const id of ["tail-copy", "copy-state"]) {
      const element = document.getElementById(id);
      const note = () => element.textContent && said.push([id, element.textContent]);
      new MutationObserver(note).observe(element, { childList: true });
    }
"""
"""Keeps what the button and the place for screen readers say: they say it for a moment only."""


def test_copy_takes_what_is_shown_oldest_first_a_line_each(page: TailPage, unique: str) -> None:
    page.open(f"demo:{unique}")
    permissions = {"permissions": ["clipboardReadWrite"], "origin": page.server.address}
    page.browser.execute_cdp_cmd("Browser.grantPermissions", permissions)
    page.publish({"n": 1}, {"other": 2}, {"n": 3})
    page.until(lambda: len(page.data) == 3, "the publications")
    page.element("tail-filter").send_keys('"n"')

    page.browser.execute_script(NOTE_WORDS)

    page.element("tail-copy").click()

    said = "return said"
    page.until(lambda: len(page.browser.execute_script(said)) >= 2, "the words")
    assert sorted(page.browser.execute_script(said)[:2]) == [
        ["copy-state", "Copied"],
        ["tail-copy", "Copied"],
    ]
    text = page.browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    lines = [json.loads(line) for line in text.split("\n")]
    assert [(line["kind"], line["offset"], line["data"]) for line in lines] == [
        ("publish", 1, {"n": 1}),
        ("publish", 3, {"n": 3}),
    ]


NAMES_OF_COPY = """
    return [...document.querySelectorAll("#channel-tail [data-copy], #channel-history [data-copy]")]
        .map((button) => button.ariaLabel);
"""


def test_every_button_that_copies_says_what(page: TailPage, unique: str) -> None:
    page.server.publish(f"demo:{unique}", "kept")
    page.open(f"demo:{unique}")
    page.publish("one", "two")
    page.until(lambda: len(page.data) == 2, "both publications")
    names = page.browser.execute_script(NAMES_OF_COPY)
    assert names == [f"Copy publication #{offset}" for offset in (3, 2, 1)]


def test_tail_is_used_with_the_keyboard_only_and_focus_is_seen(page: TailPage, unique: str) -> None:
    page.open(f"demo:{unique}")
    order = ["tail-pause", "tail-clear", "tail-copy", "tail-filter"]
    page.browser.execute_script("document.getElementById('channel-publish').focus()")

    reached: list[str | None] = []
    while reached[-1:] != order[-1:] and len(reached) < 10:
        ActionChains(page.browser).send_keys(Keys.TAB).perform()
        focused = page.browser.switch_to.active_element
        assert focused.value_of_css_property("outline-style") == "solid"
        reached.append(focused.get_attribute("id"))
    assert reached[-len(order) :] == order

    page.element("tail-pause").send_keys(Keys.ENTER)
    assert page.element("tail-pause").text == "Resume"


def test_turning_pages_and_refreshing_leaves_the_tail_as_it_is(page: TailPage, unique: str) -> None:
    channel = f"demo:{unique}"
    page.server.publish(channel, *range(25))
    page.open(channel)
    page.publish("live")
    page.until(lambda: page.data == ['"live"'], "the publication")

    page.browser.find_element(By.CSS_SELECTOR, "#channel-history .panel-pages a").click()
    page.until(lambda: "#1" in page.texts("#channel-history .panel-offset"), "the second page")
    page.element("channel-refresh").click()
    page.until(lambda: "#26" in page.texts("#channel-history .panel-offset"), "the first page")

    assert page.data == ['"live"']
    assert page.state == "live"


def test_tail_with_contents_fits_a_phone(page: TailPage, unique: str) -> None:
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.open(f"demo:{unique}")
        page.publish("x" * 400, ["y" * 5000])
        page.until(lambda: len(page.kinds) == 2, "both publications")
        width = page.browser.execute_script("return document.documentElement.scrollWidth")
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert width == 390


# tokens

OWN_TOKEN = """
    const fetchOfBrowser = window.fetch;
    let asked = false;
    window.fetch = (url, options) => {
      if (asked || !String(url).includes("/channel/token/")) return fetchOfBrowser(url, options);
      asked = true;
      return new Promise((resolve) => {
        window.giveToken = (token) => resolve(new Response(JSON.stringify({ token })));
      });
    };
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (frame) {
      const { id, method } = JSON.parse(frame);
      if (method === 10) {
        this.addEventListener("message", ({ data }) => {
          const replies = data.split("\\n").filter(Boolean).map((line) => JSON.parse(line));
          window.refreshed ??= replies.find((reply) => reply.id === id)?.result;
        });
      }
      send.call(this, frame);
    };
"""
"""The page waits for its first token. The server's answer to a refresh is kept."""


def test_token_is_renewed_before_it_expires(page: TailPage, panel_site: Path, unique: str) -> None:
    channel = f"demo:{unique}"
    secret = (panel_site / "django_secret_key").read_text().strip()
    key = salted_hmac("realtime.conf.observer_keys", "", secret, algorithm="sha256").digest()
    script = {"source": OWN_TOKEN}
    added = page.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    try:
        page.load(channel)
        page.until(
            lambda: page.browser.execute_script("return Boolean(window.giveToken)"), "a request"
        )
        token = issue.observer_token(key, [channel], ttl=4)
        page.browser.execute_script("window.giveToken(arguments[0])", token)
        refreshed = "return window.refreshed"
        page.until(lambda: page.browser.execute_script(refreshed), "the answer to a refresh")
        ttl = page.browser.execute_script(refreshed)["ttl"]
    finally:
        page.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)

    assert TOKEN_TTL - 10 < ttl <= TOKEN_TTL
    page.publish("after")
    page.until(lambda: page.data == ['"after"'], "a publication")
    assert page.kinds == ["publish"], "the connection was lost"


def test_tail_of_an_operator_who_is_signed_out_stops_and_says_so(
    page: TailPage, unique: str
) -> None:
    page.open(f"demo:{unique}")
    cookies = page.browser.get_cookies()
    script = """
        import("/static/admin_panel/tail.js").then(({ Tail }) => {
          new Tail(document.getElementById("channel-tail")).start();
        });
    """
    page.browser.delete_cookie("sessionid")
    try:
        page.browser.execute_script(script)
        page.until(lambda: page.state == "stopped", "the state")
    finally:
        for cookie in cookies:
            page.browser.add_cookie(cookie)

    assert "signed out" in page.element("tail-state").text
    assert page.element("tail-connect").is_displayed()
    assert ["realtime refused" in line for line in console(page.browser)] == [True]


# who published


def test_operator_who_published_is_named_and_others_are_not(
    tail_page: TailPage, unique: str
) -> None:
    page = tail_page
    page.open(f"demo:{unique}")
    page.publish({"same": 1})
    with closing(sign_in(page.server.address, PASSWORD)) as browser:
        send(browser, page.channel, '{"same": 1}')
        params = f'{{"channel": "{page.channel}", "data": {{"same": 1}}}}'
        run = page_path("console") + "run/"
        assert post(browser, run, method="publish", params=params).json()["ok"]
        send(browser, page.channel, '{"same": 1}', once="first")
        page.publish({"same": 1})
        send(browser, page.channel, '{"same": 1}', once="first")

        def named() -> list[str]:
            return page.texts("#tail-list li :is([data-part=operator], [data-part=server])")

        expected = ["server", OPERATOR, OPERATOR, OPERATOR, "server"]
        page.until(lambda: named() == expected, "who published")
        page.element("tail-filter").send_keys(OPERATOR)
        assert len(page.data) == 3
