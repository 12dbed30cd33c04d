"""Each example in a browser, as its README says."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from tests.browser import console, leave, wait_for
from tests.live.examples.sites import NAMES, Example
from tests.server import ListeningProcess, wait_until


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Example]:
    """All examples, one in a hurry and one with time: name → example."""
    directory = tmp_path_factory.mktemp("examples")
    examples = {name: Example(name, directory) for name in NAMES}
    examples["assistant"].change("assistant/model.py", "PACE = 0.06", "PACE = 0.2")
    examples["chat"].change("settings.py", '"leave_delay": 3', '"leave_delay": 0.1')
    return examples


@pytest.fixture(scope="module")
def servers(examples: Mapping[str, Example]) -> Iterator[Mapping[str, ListeningProcess]]:
    """The server of each of them, started side by side."""
    with ThreadPoolExecutor(len(NAMES)) as pool:
        starting = {name: pool.submit(example.serve) for name, example in examples.items()}
    try:
        yield {name: start.result() for name, start in starting.items()}
    finally:
        for start in starting.values():
            if start.exception() is None:
                start.result().discard()


@pytest.fixture
def browser(clean_browser: Chrome) -> Iterator[Chrome]:
    """The browser with one window; what a page writes to the console is an error."""
    yield clean_browser
    logged = console(clean_browser)
    first, *others = clean_browser.window_handles
    for window in others:
        clean_browser.switch_to.window(window)
        clean_browser.close()
    clean_browser.switch_to.window(first)
    leave(clean_browser)
    assert logged == []


TEXTS = """
    const found = [...document.querySelectorAll(arguments[0])];
    return found.map((element) => (element.innerText ?? "").trim());
"""


class Window:
    """One window of the browser, in the words of someone who looks at it."""

    def __init__(self, browser: Chrome, address: str, *, first: bool = False) -> None:
        self.browser = browser
        if not first:
            browser.switch_to.new_window("window")
        self._window = browser.current_window_handle
        browser.get(address)

    def look(self) -> None:
        """Turn to this window."""
        self.browser.switch_to.window(self._window)

    def close(self) -> None:
        self.look()
        self.browser.close()

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements, read at one moment."""
        found: list[str] = self.browser.execute_script(TEXTS, selector)
        return found

    def until(self, selector: str, *texts: str) -> None:
        """Wait until there are these texts."""
        self.look()
        what = f"{selector}: {list(texts)}"
        wait_for(self.browser, lambda: self.texts(selector) == list(texts), what)

    def until_true(self, condition: Callable[[], object], what: str) -> None:
        self.look()
        wait_for(self.browser, condition, what)

    def click(self, selector: str) -> None:
        """Click on an element, of the next page if that takes the place of this one meanwhile."""

        def clicked() -> bool:
            self.browser.find_element(By.CSS_SELECTOR, selector).click()
            return True

        self.until_true(clicked, f"{selector} to click on")

    def type(self, selector: str, text: str) -> None:
        self.look()
        self.browser.find_element(By.CSS_SELECTOR, selector).send_keys(text)


def of_another_person(address: str) -> str:
    """Return the address by which a browser has other cookies for a server."""
    return address.replace("127.0.0.1", "localhost")


HOLD = """
    const { setTimeout } = window;
    window.setTimeout = (run, delay) => delay === arguments[0] ? 0 : setTimeout(run, delay);
"""
"""Timers of this delay never end."""
WRITES_FOR = 4000
"""Milliseconds for which the chat says that someone writes."""


def test_chat_shows_what_is_said_by_whom_and_who_is_here(
    servers: Mapping[str, ListeningProcess], browser: Chrome
) -> None:
    address = servers["chat"].address
    ada = Window(browser, address, first=True)
    ada.click("button[value=Ada]")
    ada.until("#people li", "Ada (you)")
    browser.execute_script(HOLD, WRITES_FOR)
    ben = Window(browser, of_another_person(address))
    ben.click("button[value=Ben]")
    ben.until("#people li", "Ada", "Ben (you)")
    ada.until("#people li", "Ada (you)", "Ben")

    ben.type("#text", "<b>hi</b>")
    ada.until("#writers", "Ben is writing…")
    ben.type("#text", Keys.ENTER)

    for window in (ada, ben):
        window.until("#messages li", "Ben\n<b>hi</b>" if window is ada else "<b>hi</b>")
    ada.until("#writers", "")
    ada.browser.refresh()
    ada.until("#people li", "Ada (you)", "Ben")
    assert ada.texts("#messages li") == ["Ben\n<b>hi</b>"]

    ben.close()
    ada.until("#people li", "Ada (you)")


def test_dashboard_shows_what_was_sold_elsewhere_and_while_it_was_cut(
    examples: Mapping[str, Example], servers: Mapping[str, ListeningProcess], browser: Chrome
) -> None:
    address = servers["dashboard"].address

    def sold() -> int:
        with urllib.request.urlopen(f"{address}/state", timeout=20) as response:
            return int(json.load(response)["totals"]["orders"])

    screen = Window(browser, address, first=True)

    def shown() -> int:
        return int(screen.texts("#orders")[0].replace(",", ""))

    screen.until("#status", "Live")
    done = examples["dashboard"].manage("sell", "1")  # in a process of its own, without Redis
    assert done.returncode == 0, done.stderr
    screen.until_true(lambda: shown() == sold() > 0, "the first sale")
    first = shown()
    screen.click("#sell button")
    screen.until_true(lambda: shown() > first, "the next sale")
    screen.click("#cut")
    screen.until("#cut", "Connect again")
    before = shown()
    wait_until(lambda: sold() > before, what="a sale that the page misses")
    assert shown() == before

    screen.click("#cut")

    screen.until_true(lambda: screen.texts("rect.recovered"), "what was missed")
    screen.until_true(lambda: shown() == sold(), "all that was sold")
    browser.refresh()
    # which may have missed seconds of its own, between the page and its connection
    screen.until_true(lambda: shown() == sold(), "all that was sold, in a new page")


def test_notifications_are_the_same_in_all_tabs(
    servers: Mapping[str, ListeningProcess], browser: Chrome
) -> None:
    address = servers["notifications"].address
    one = Window(browser, address, first=True)
    one.click("button[value=Ada]")
    one.until("#state", "")
    other = Window(browser, address)
    other.until("#state", "")
    tabs = (one, other)

    def order() -> None:
        browser.find_element(By.CSS_SELECTOR, "form:has(#to) button").click()

    other.click("[name=fail]")
    order()
    other.click("[name=fail]")
    order()
    order()
    for tab in tabs:
        tab.until("#count", "2")
        assert browser.title == "(2) Notifications"
        assert len(tab.texts("#list li")) == 2

    one.click("#list li:last-child button")

    for tab in tabs:
        tab.until("#count", "1")
        assert tab.texts("#list .unread") == tab.texts("#list li:first-child")
    browser.refresh()
    other.until("#count", "1")
    other.click("section form:first-of-type button")
    for tab in tabs:
        tab.until("#count", "")
        assert browser.title == "Notifications"


ROWS = "main li span"


class PlainVisitor:
    """A browser without JavaScript, which sends the forms of the to-do list."""

    def __init__(self, address: str) -> None:
        # nothing stays open, so nothing has to be closed
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(
            base_url=address, follow_redirects=True, timeout=20, limits=limits
        )
        self.page = self._http.get("/").text

    def send(self, path: str, **fields: str) -> None:
        """Send a form; the page that it leads to is `page`."""
        [token, *_] = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', self.page)
        self.page = self._http.post(path, data={"csrfmiddlewaretoken": token, **fields}).text

    def press(self, label: str) -> None:
        """Press the button of a row."""
        [path] = re.findall(rf'formaction="([^"]+)"[^>]*aria-label="{label}"', self.page)
        self.send(path)


def test_list_is_live_and_works_without_javascript(
    servers: Mapping[str, ListeningProcess], browser: Chrome
) -> None:
    address = servers["todo"].address
    window = Window(browser, address, first=True)
    plain = PlainVisitor(address)

    plain.send("/add", title="Milk")
    window.until(ROWS, "Milk")
    window.type("#add [name=title]", "half of a tho")
    plain.send("/add", title="<b>Bread</b>")
    window.until(ROWS, "Milk", "<b>Bread</b>")
    plain.press("Done: Milk")
    window.until("main li.done span", "Milk")
    plain.press("Remove: &lt;b&gt;Bread&lt;/b&gt;")
    window.until(ROWS, "Milk")

    window.type("#add [name=title]", f"ught{Keys.ENTER}")
    window.until(ROWS, "Milk", "half of a thought")
    window.click("main li:last-child button")
    window.until("main li.done span", "Milk", "half of a thought")


def test_cursors_come_move_and_go(servers: Mapping[str, ListeningProcess], browser: Chrome) -> None:
    address = servers["cursor"].address
    one = Window(browser, address, first=True)
    one.until_true(lambda: len(one.texts("#people li")) == 1, "the first visitor")
    board = browser.find_element(By.ID, "board")
    ActionChains(browser).move_to_element(board).perform()
    other = Window(browser, address)
    name = other.browser.find_element(By.TAG_NAME, "body").get_attribute("data-name")

    other.until_true(lambda: len(other.texts(".cursor")) == 1, "the cursor of the first visitor")
    other.type("#board", Keys.ARROW_RIGHT)
    one.until(".cursor", str(name))
    place = browser.find_element(By.CSS_SELECTOR, ".cursor").get_attribute("style")
    assert "left: 52%; top: 50%" in str(place)

    other.close()
    one.until_true(lambda: not one.texts(".cursor"), "no cursor of a window that is closed")
    assert len(one.texts("#people li")) == 1


# seats


def test_seat_is_taken_once_and_cursors_go(
    servers: Mapping[str, ListeningProcess], browser: Chrome
) -> None:
    one = Window(browser, servers["seats"].address, first=True)
    one.click("button[value=A1]")
    one.until("button.mine b", "A1")
    other = Window(browser, servers["seats"].address)
    other.until("button.taken b", "A1")
    other.click("button[value=A1]")
    other.click("button[value=B2]")
    other.until("button.mine b", "B2")
    ActionChains(browser).move_to_element(browser.find_element(By.ID, "room")).perform()
    one.until("button.taken b", "B2")
    one.until_true(lambda: len(one.texts(".cursor")) == 1, "the cursor of the other visitor")

    other.close()
    one.until_true(lambda: not one.texts(".cursor"), "no cursor of a window that is closed")
    one.click("button[value=A1]")
    one.until_true(lambda: not one.texts("button.mine"), "the seat is free")


# assistant


def test_answer_survives_a_reload_is_steered_and_stopped(
    browser: Chrome, servers: Mapping[str, ListeningProcess]
) -> None:
    browser.get(servers["assistant"].address)

    def texts(kind: str) -> list[str]:
        found = browser.find_elements(By.CSS_SELECTOR, f"#messages .{kind}")
        return [each.text.strip() for each in found]

    def ask(text: str) -> None:
        browser.find_element(By.ID, "text").send_keys(text, Keys.ENTER)
        wait_until(lambda: text in texts("mine"))

    ask("And the weather?")
    wait_until(lambda: texts("complete") == ["It snows in Oslo, and has minus three degrees."])
    assert texts("tool") == ["-3 °C, snow"]

    ask("A story")
    wait_until(lambda: "piece by piece" in "".join(texts("streaming")))
    browser.refresh()
    wait_until(lambda: "piece by piece" in "".join(texts("streaming")))
    ask("shorter")
    wait_until(lambda: "(You say: shorter. I hear it.)" in "".join(texts("streaming")))
    browser.find_element(By.ID, "stop").click()
    wait_until(lambda: len(texts("stopped")) == 1)
    [stopped] = texts("stopped")

    browser.refresh()
    wait_until(lambda: texts("stopped") == [stopped])
    assert texts("mine") == ["And the weather?", "A story", "shorter"]
