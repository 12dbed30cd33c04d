"""The demo page in a real browser: connect, publish, presence, recovery, hostile payloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from realtime.auth import issue
from realtime.config.reader import load
from tests.browser import console, start_browser, wait_for
from tests.ready_site import ReadySite
from tests.server import wait_until

CHANNEL = "demo:lobby"
CUT_DELAY = 8_000
"""Milliseconds that the page stays away when it is cut."""
HOLD = """
    const { setTimeout } = window;
    window.setTimeout = (run, delay) => {
      if (delay === arguments[0]) window.held = run;
      else return setTimeout(run, delay);
    };
"""
"""Timers of this delay wait for the test instead, in `held`."""
HISTORY_SIZE = 100
"""Of the namespace demo in the settings of the ready site."""


class Page:
    """The demo page in one browser, in the words of someone who looks at it."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser = browser
        self.address = address

    def open(self) -> Page:
        """Load the page and wait until it is subscribed."""
        self.browser.get(self.address)
        return self.until(lambda: self.state == "connected" and self.present, "connected")

    def until(self, condition: Callable[[], object], what: str) -> Page:
        wait_for(self.browser, condition, what)
        return self

    def text(self, element_id: str) -> str:
        return self.browser.find_element(By.ID, element_id).text

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements, read at one moment: the page may change between reads."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        found: list[str] = self.browser.execute_script(script, selector)
        return found

    def click(self, element_id: str) -> None:
        self.browser.find_element(By.ID, element_id).click()

    def type(self, text: str) -> None:
        self.browser.find_element(By.ID, "text").send_keys(text)

    @property
    def state(self) -> str:
        return str(self.browser.find_element(By.ID, "status").get_attribute("data-state"))

    @property
    def publications(self) -> list[str]:
        return self.texts("#log .publication .text")

    @property
    def missed(self) -> list[str]:
        """Publications that came by recovery."""
        return self.texts("#log .publication:has(.badge) .text")

    @property
    def present(self) -> list[str]:
        """Client IDs of those who are here."""
        script = (
            "return [...document.querySelectorAll('#presence li')].map((e) => e.dataset.client)"
        )
        found: list[str] = self.browser.execute_script(script)
        return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadySite]:
    """The ready site."""
    site = ReadySite(tmp_path_factory.mktemp("site"))
    yield site
    site.stop()


@pytest.fixture(scope="module")
def browsers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Chrome]]:
    """Two browsers, so two visitors."""
    started: list[Chrome] = []
    try:
        for _ in range(2):
            started.append(start_browser(tmp_path_factory.mktemp("profile")))
        yield started
    finally:
        for browser in started:
            browser.quit()


@pytest.fixture
def pages(site: ReadySite, browsers: list[Chrome]) -> Iterator[list[Page]]:
    """The page in both browsers, not opened yet. Whatever they log to the console is an error."""
    yield [Page(browser, site.address + "/demo") for browser in browsers]
    logged = [line for browser in browsers for line in console(browser)]
    for browser in browsers:
        browser.get("about:blank")
    wait_until(lambda: nobody_in(site), what="both pages have left")
    assert logged == []


def nobody_in(site: ReadySite) -> bool:
    """Whether no page of an earlier test is subscribed any more."""
    [reply] = site.api({"method": "presence", "params": {"channel": CHANNEL}})
    return reply["result"]["presence"] == {}


@pytest.fixture
def page(pages: list[Page]) -> Page:
    """The page, connected."""
    return pages[0].open()


def test_page_connects_and_shows_who_it_is(page: Page) -> None:
    assert page.text("status-text") == "Connected"
    assert page.present == [page.text("client")]
    assert page.texts("#presence .badge") == ["this page"]


def test_publication_posted_to_the_api_appears(site: ReadySite, page: Page, unique: str) -> None:
    site.publish(CHANNEL, {"text": unique})

    page.until(lambda: unique in page.publications, "the publication")


def test_data_without_text_are_shown_as_json(site: ReadySite, page: Page, unique: str) -> None:
    site.publish(CHANNEL, {"n": [1, unique, None]})

    page.until(lambda: f'{{"n":[1,"{unique}",null]}}' in page.publications, "the data")


def test_text_sent_with_enter_reaches_the_other_page_with_its_author(
    pages: list[Page], unique: str
) -> None:
    writer, reader = (page.open() for page in pages)
    author = writer.texts("#presence li:has(.badge)")[0].removesuffix("this page")

    writer.type(unique + "\n")

    reader.until(lambda: unique in reader.publications, "the publication")
    assert reader.texts("#log .publication:last-child .who") == [author]
    writer.until(lambda: unique in writer.texts("#log .own .text"), "its own publication")


def test_two_pages_see_each_other_come_and_go(pages: list[Page]) -> None:
    first, second = (page.open() for page in pages)
    both = sorted([first.text("client"), second.text("client")])

    first.until(lambda: sorted(first.present) == both, "both in the first page")
    second.until(lambda: sorted(second.present) == both, "both in the second page")

    second.browser.get("about:blank")
    first.until(lambda: first.present == [first.text("client")], "only itself")
    assert [note.rpartition(" ")[2] for note in first.texts("#log .note")] == ["joined.", "left."]


def test_cut_page_gets_what_was_published_while_it_was_away(
    site: ReadySite, page: Page, unique: str
) -> None:
    before, missed, after = f"{unique}-before", f"{unique}-missed", f"{unique}-after"
    site.publish(CHANNEL, {"text": before})
    page.until(lambda: before in page.publications, "the first publication")

    page.click("cut-button")
    page.until(lambda: page.state == "waiting", "cut")
    site.publish(CHANNEL, {"text": missed})
    page.click("cut-button")
    page.until(lambda: page.state == "connected", "connected again")
    site.publish(CHANNEL, {"text": after})

    page.until(lambda: after in page.publications, "the last publication")
    assert page.publications[-3:] == [before, missed, after]
    assert page.missed == [missed]
    assert page.text("recovery") == "recovered, 1 missed"


def test_cut_page_comes_back_by_itself(page: Page) -> None:
    client = page.text("client")
    page.browser.execute_script(HOLD, CUT_DELAY)
    page.click("cut-button")
    page.until(lambda: page.state == "waiting", "cut")
    assert page.text("countdown").startswith("back in")

    page.browser.execute_script("held()")
    page.until(lambda: page.state == "connected", "connected again")

    assert page.text("client") != client
    page.until(lambda: page.text("recovery") == "recovered, 0 missed", "the recovery")


def test_page_says_when_history_no_longer_holds_what_it_missed(
    site: ReadySite, page: Page, unique: str
) -> None:
    page.click("cut-button")
    page.until(lambda: page.state == "waiting", "cut")
    texts = [f"{unique}-{number}" for number in range(HISTORY_SIZE + 1)]
    site.publish(CHANNEL, *({"text": text} for text in texts))
    page.click("cut-button")

    page.until(lambda: page.text("recovery") == "not recovered", "the truth")

    assert page.missed == texts[1:]


@pytest.mark.parametrize("as_text", [True, False], ids=["text", "json"])
def test_hostile_payload_is_shown_as_text(
    site: ReadySite, page: Page, unique: str, as_text: bool
) -> None:
    hostile = f"<img src=x onerror=\"document.title='{unique}'\"><script>alert(1)</script>{unique}"

    site.publish(CHANNEL, {"text": hostile} if as_text else [hostile])

    page.until(lambda: unique in "".join(page.publications), "the publication")
    if as_text:
        assert page.publications[-1] == hostile
    assert page.texts("#log img, #log script") == []
    assert page.browser.title == "Realtime demo"


def test_reloaded_page_begins_with_what_the_channel_keeps(
    site: ReadySite, page: Page, unique: str
) -> None:
    kept = [f"{unique}-1", f"{unique}-2"]
    site.publish(CHANNEL, *({"text": text} for text in kept))

    page.open()
    page.until(lambda: page.texts("#log .live"), "what is kept")
    site.publish(CHANNEL, {"text": f"{unique}-live"})

    page.until(lambda: f"{unique}-live" in page.publications, "the publication")
    assert page.publications[-3:] == [*kept, f"{unique}-live"]


def test_history_button_shows_what_is_kept_in_order(
    site: ReadySite, page: Page, unique: str
) -> None:
    site.publish(CHANNEL, {"text": f"{unique}-1"}, {"text": f"{unique}-2"})

    page.click("history-button")

    page.until(lambda: page.texts("#history-dialog[open]"), "the dialog")
    assert page.texts("#history-list .text")[-2:] == [f"{unique}-1", f"{unique}-2"]


BRING_TOKEN = """
    const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (frame) {
      send.call(this, frame.replace(/"token":"[^"]*"/, '"token":"TOKEN"'));
    };
"""
"""Puts another token in place of the page's."""


@pytest.fixture
def user(page: Page, site: ReadySite, unique: str) -> Iterator[str]:
    """The user as whom the page is connected, in place of a guest: operators can name it."""
    config = load({"token_hmac_secret_key": site.secret("token_hmac_secret_key")})
    script = BRING_TOKEN.replace("TOKEN", issue.connection_token(config, unique))
    added = page.browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": script}
    )
    page.open()
    yield unique
    page.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_page_obeys_the_advice_not_to_reconnect(site: ReadySite, page: Page, user: str) -> None:
    site.api({"method": "disconnect", "params": {"user": user}})

    page.until(lambda: page.text("status-text") == "Disconnected: force disconnect", "the reason")
    assert page.state == "closed"
    assert page.text("countdown") == ""

    page.click("cut-button")
    page.until(lambda: page.state == "connected", "connected by hand")


def test_page_says_why_nothing_was_published(
    site: ReadySite, page: Page, unique: str, user: str
) -> None:
    site.api({"method": "unsubscribe", "params": {"channel": CHANNEL, "user": user}})
    page.until(lambda: page.present == [], "unsubscribed")

    page.type(unique + "\n")

    # the namespace has subscribe_to_publish on
    page.until(lambda: page.text("publish-error") == "Not published: permission denied.", "why")


def test_page_fits_a_phone(site: ReadySite, page: Page) -> None:
    site.publish(CHANNEL, {"text": "long" * 100})
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.until(lambda: page.publications, "the publication")
        width = page.browser.execute_script("return document.documentElement.scrollWidth")
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert width == 390


CONNECT = """
    const [url, token, method, done] = arguments;
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (frame) {
      const command = JSON.parse(frame);
      if (command.method === method) {
        this.addEventListener("message", ({ data }) => {
          const reply = data.split("\\n").filter(Boolean).map((line) => JSON.parse(line))
            .find(({ id, error }) => id === command.id && !error);
          if (reply) done(reply.result);
        });
      }
      send.call(this, frame);
    };
    import("/static/realtime/client.js").then(({ Client }) => {
      const getToken = async () => (await (await fetch("/demo/token")).json()).token;
      new Client(url, { token, getToken }).connect();
    });
"""
"""Connects with a token; answers with the result of the first good reply to a method."""


@pytest.mark.parametrize(
    ("ttl", "method"), [(-10, 0), (4, 10)], ids=["expired before connect", "refreshed in time"]
)
def test_page_renews_its_token(site: ReadySite, page: Page, ttl: int, method: int) -> None:
    config = load({"token_hmac_secret_key": site.secret("token_hmac_secret_key")})
    page.browser.set_script_timeout(20)
    token = issue.connection_token(config, "", ttl=ttl)

    result = page.browser.execute_async_script(CONNECT, site.socket, token, method)

    # the token of /demo/token is valid for an hour
    assert 3500 < result["ttl"] <= 3600
