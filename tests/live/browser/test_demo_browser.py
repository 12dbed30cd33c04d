"""The demo page in a real browser: two clients, presence, recovery, hostile payloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from realtime.auth import issue
from realtime.config.reader import load
from tests.browser import console, leave, wait_for
from tests.ready_site import ReadySite
from tests.server import wait_until

CHANNEL = "demo:lobby"
CUT_DELAY = 12_000
"""Milliseconds that a client stays away when it is cut."""
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


class Pane:
    """One client of the demo page, in the words of someone who looks at it."""

    def __init__(self, browser: Chrome, element_id: str) -> None:
        self.browser = browser
        self.id = element_id

    def until(self, condition: Callable[[], object], what: str) -> Pane:
        wait_for(self.browser, condition, what)
        return self

    def text(self, part: str) -> str:
        return self._find(part).text

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements, read at one moment: the page may change between reads."""
        return texts(self.browser, f"#{self.id} {selector}")

    def click(self, part: str) -> None:
        self._find(part).click()

    def type(self, text: str) -> None:
        self._find("publish input").send_keys(text)

    def publish(self, text: str) -> None:
        """Publish a text with the form, and wait until the service has it."""
        self.type(text + "\n")
        field = self._find("publish input")
        self.until(lambda: field.get_property("value") == "", "published")

    def _find(self, part: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, f"#{self.id} .{part}")

    @property
    def state(self) -> str:
        return str(self._find("status").get_attribute("data-state"))

    @property
    def publications(self) -> list[str]:
        return self.texts(".publication .text")

    @property
    def recovered(self) -> list[str]:
        """Publications that came by recovery."""
        return self.texts(".publication:has(.badge) .text")

    @property
    def present(self) -> list[str]:
        """Client IDs of those who are here."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.dataset.client)"
        found: list[str] = self.browser.execute_script(script, f"#{self.id} .present li")
        return found


class Page(Pane):
    """The demo page: the visitor's own client, and the other one."""

    def __init__(self, browser: Chrome, address: str) -> None:
        super().__init__(browser, "own")
        self.address = address
        self.other = Pane(browser, "other")

    def places(self) -> list[float]:
        """Where the parts of the page begin, in pixels from its top."""
        script = """
            return [...document.querySelectorAll(".pane > *, dd, .terminal")]
              .map((e) => e.getBoundingClientRect().top + scrollY)
        """
        found: list[float] = self.browser.execute_script(script)
        return found

    def open(self) -> Page:
        """Load the page and wait until both clients are subscribed and see each other."""
        self.browser.get(self.address)
        self.until(lambda: len(self.present) == len(self.other.present) == 2, "both connected")
        return self


def texts(browser: Chrome, selector: str) -> list[str]:
    """The texts of all elements of the page, read at one moment."""
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
    found: list[str] = browser.execute_script(script, selector)
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadySite]:
    """The ready site."""
    site = ReadySite(tmp_path_factory.mktemp("site"))
    yield site
    site.discard()


@pytest.fixture
def page(site: ReadySite, clean_browser: Chrome) -> Iterator[Page]:
    """The page, connected. Whatever it logs to the console is an error."""
    yield Page(clean_browser, site.address + "/demo").open()
    logged = console(clean_browser)
    leave(clean_browser)
    wait_until(lambda: nobody_in(site), what="both clients have left")
    assert logged == []


def nobody_in(site: ReadySite) -> bool:
    """Whether no client of an earlier test is subscribed any more."""
    [reply] = site.api({"method": "presence", "params": {"channel": CHANNEL}})
    return reply["result"]["presence"] == {}


def test_page_connects_two_clients_and_shows_who_they_are(page: Page) -> None:
    assert page.text("state") == page.other.text("state") == "Connected"
    both = sorted([page.text("client"), page.other.text("client")])
    assert sorted(page.present) == sorted(page.other.present) == both
    assert page.texts(".present li:has(.badge)") == [page.text("name") + "this client"]
    assert page.other.texts(".present li:has(.badge)") == [page.other.text("name") + "this client"]


def test_publication_posted_to_the_api_appears(site: ReadySite, page: Page, unique: str) -> None:
    site.publish(CHANNEL, {"text": unique})
    page.until(lambda: unique in page.publications, "the publication")


def test_data_without_text_are_shown_as_json(site: ReadySite, page: Page, unique: str) -> None:
    site.publish(CHANNEL, {"n": [1, unique, None]})
    page.until(lambda: f'{{"n":[1,"{unique}",null]}}' in page.publications, "the data")


def test_text_sent_with_enter_reaches_both_clients_with_its_author(page: Page, unique: str) -> None:
    page.type(unique + "\n")
    page.other.until(lambda: unique in page.other.publications, "the publication")
    assert page.other.texts(".publication:last-child .who") == [page.text("name")]
    assert page.other.texts(".own") == []
    page.until(lambda: unique in page.texts(".own .text"), "its own publication")


def test_cut_client_leaves_and_gets_what_it_missed_when_it_comes_back(
    site: ReadySite, page: Page, unique: str
) -> None:
    before, first, second, after = (f"{unique}-{each}" for each in ("before", 1, 2, "after"))
    site.publish(CHANNEL, {"text": before})
    page.until(lambda: before in page.publications, "the first publication")
    page.browser.execute_script(HOLD, CUT_DELAY)

    page.click("cut")
    page.until(lambda: page.state == "waiting", "cut")
    other = page.other.text("client")
    page.other.until(lambda: page.other.present == [other], "that it has left")
    page.other.publish(first)
    page.other.publish(second)
    page.other.until(lambda: page.other.publications[-2:] == [first, second], "both at once")
    assert page.publications[-1] == before
    page.click("cut")
    page.until(lambda: page.state == "connected", "connected again")
    site.publish(CHANNEL, {"text": after})

    page.until(lambda: after in page.publications, "the last publication")
    assert page.publications[-4:] == [before, first, second, after]
    assert page.recovered == [first, second]
    assert page.text("recovery") == "recovered, 2 missed"
    page.other.until(lambda: after in page.other.publications, "the last publication, too")
    assert page.other.publications[-4:] == page.publications[-4:]
    assert page.other.recovered == []
    notes = page.other.texts(".note")
    assert notes[-2:] == [f"{page.text('name')} {what}." for what in ("left", "joined")]


def test_cut_client_comes_back_by_itself(page: Page) -> None:
    client = page.text("client")
    places = page.places()
    page.browser.execute_script(HOLD, CUT_DELAY)
    page.click("cut")
    page.until(lambda: page.state == "waiting", "cut")
    assert page.text("countdown").startswith("back in")
    assert page.places() == places

    page.browser.execute_script("held()")
    page.until(lambda: page.state == "connected", "connected again")

    assert page.text("client") != client
    page.until(lambda: page.text("recovery") == "recovered, 0 missed", "the recovery")
    assert page.places() == places


def test_page_says_when_history_no_longer_holds_what_it_missed(
    site: ReadySite, page: Page, unique: str
) -> None:
    page.browser.execute_script(HOLD, CUT_DELAY)
    page.click("cut")
    page.until(lambda: page.state == "waiting", "cut")
    published = [f"{unique}-{number}" for number in range(HISTORY_SIZE + 1)]
    site.publish(CHANNEL, *({"text": text} for text in published))
    page.click("cut")
    page.until(lambda: page.text("recovery") == "not recovered", "the truth")
    assert page.recovered == published[1:]


@pytest.mark.parametrize("as_text", [True, False], ids=["text", "json"])
def test_hostile_payload_is_shown_as_text(
    site: ReadySite, page: Page, unique: str, as_text: bool
) -> None:
    hostile = f"<img src=x onerror=\"document.title='{unique}'\"><script>alert(1)</script>{unique}"
    site.publish(CHANNEL, {"text": hostile} if as_text else [hostile])
    page.until(lambda: unique in "".join(page.publications), "the publication")
    if as_text:
        assert page.publications[-1] == hostile
    assert page.texts("img, .log script") == []
    assert page.browser.title == "Realtime demo"


def test_reloaded_page_begins_with_what_the_channel_keeps(
    site: ReadySite, page: Page, unique: str
) -> None:
    kept = [f"{unique}-1", f"{unique}-2"]
    site.publish(CHANNEL, *({"text": text} for text in kept))
    page.open()
    page.until(lambda: page.texts(".live"), "what is kept")
    site.publish(CHANNEL, {"text": f"{unique}-live"})
    page.until(lambda: f"{unique}-live" in page.publications, "the publication")
    assert page.publications[-3:] == [*kept, f"{unique}-live"]


def test_history_button_shows_what_is_kept_in_order(
    site: ReadySite, page: Page, unique: str
) -> None:
    site.publish(CHANNEL, {"text": f"{unique}-1"}, {"text": f"{unique}-2"})
    page.click("history")
    page.until(lambda: texts(page.browser, "#history-dialog[open]"), "the dialog")
    assert texts(page.browser, "#history-list .text")[-2:] == [f"{unique}-1", f"{unique}-2"]


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
    page.until(lambda: page.text("state") == "Disconnected: force disconnect", "the reason")
    assert page.state == "closed"
    assert page.text("countdown") == ""
    [warning] = console(page.browser)
    assert "realtime refused" in warning
    page.click("cut")
    page.until(lambda: page.state == "connected", "connected by hand")


def test_page_says_why_nothing_was_published(
    site: ReadySite, page: Page, unique: str, user: str
) -> None:
    site.api({"method": "unsubscribe", "params": {"channel": CHANNEL, "user": user}})
    page.until(lambda: page.present == [], "unsubscribed")
    page.type(unique + "\n")
    # the namespace has subscribe_to_publish on
    page.until(lambda: page.text("form-error") == "Not published: permission denied.", "why")


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
    ("ttl", "method"), [(-10, 0), (6, 10)], ids=["expired before connect", "refreshed in time"]
)
def test_page_renews_its_token(site: ReadySite, page: Page, ttl: int, method: int) -> None:
    config = load({"token_hmac_secret_key": site.secret("token_hmac_secret_key")})
    page.browser.set_script_timeout(60)
    token = issue.connection_token(config, "", ttl=ttl)
    result = page.browser.execute_async_script(CONNECT, site.socket, token, method)
    # the token of /demo/token is valid for an hour
    assert 3500 < result["ttl"] <= 3600
