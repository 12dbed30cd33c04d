"""Make the pictures of the examples: part of `make pictures`.

Starts each example as its README says, and photographs what some people do there. A person is a
window with an address of its own, such as ada.localhost, because cookies belong to an address.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from docs.pictures.make import Camera
from docs.pictures.png import reduce
from tests.browser import browsing
from tests.live.examples.sites import Example
from tests.server import wait_until

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 900, 560
"""CSS pixels."""


class Visit(Camera):
    """A window of a person."""

    def __init__(self, browser: Chrome, port: int, person: str, width: int = WIDTH) -> None:
        browser.switch_to.new_window("window")
        self._window = browser.current_window_handle
        super().__init__(browser, f"http://{person.lower()}.localhost:{port}")
        self.open("/", width=width)
        if self.all(f"button[value={person}]"):
            self.click(f"button[value={person}]")

    def look(self) -> Visit:
        """Turn to this window."""
        self.browser.switch_to.window(self._window)
        return self

    def write(self, selector: str, *keys: str) -> None:
        self.look().browser.find_element(By.CSS_SELECTOR, selector).send_keys(*keys)

    def shows(self, text: str, selector: str = "body") -> None:
        """Wait until an element has a text."""
        script = "return document.querySelector(arguments[0]).textContent.includes(arguments[1])"
        self.look()
        wait_until(lambda: self.run(script, selector, text), 20, text)


def assistant(browser: Chrome, port: int) -> Visit:
    """The model has called a tool, and hears what is said while it writes a story."""
    page = Visit(browser, port, "one")
    page.write("#text", "How is the weather?", Keys.ENTER)
    page.until("li.answer.complete", 1)
    page.write("#text", "Tell me a story", Keys.ENTER)
    page.shows("A stream of", "#messages")
    page.write("#text", "shorter, please", Keys.ENTER)
    page.shows("I hear it.", "#messages")
    page.shows("a reader who leaves", "#messages")
    return page


def chat(browser: Chrome, port: int) -> Visit:
    """Ben and Ada talk, and Chen begins to write."""
    people = {name: Visit(browser, port, name) for name in ("Chen", "Ben", "Ada")}
    for visit in people.values():
        visit.look().until("#people li", len(people))
    lines = (
        ("Ben", "Two parcels for Lisbon came back, both without a label."),
        ("Ada", "I have one of them here. The other one?"),
        ("Ben", "With me. I print new labels now."),
        ("Ada", "Thank you!"),
        ("Chen", "desk-4 is sold out until Thursday."),
        ("Ada", "Then please take it off the front page."),
    )
    for name, line in lines:
        people[name].write("#text", line, Keys.ENTER)
        people["Ada"].shows(line, "#messages")
    people["Chen"].write("#text", "D")
    people["Ada"].shows("Chen is writing", "#writers")
    return people["Ada"]


def dashboard(browser: Chrome, port: int) -> Visit:
    """The shop sells, and the screen is cut off for some seconds."""
    screen = Visit(browser, port, "screen")
    screen.click("#sell button")
    screen.until("rect", 30, timeout=60)
    screen.click("#cut")
    other = Visit(browser, port, "other")
    seconds = len(other.all("rect"))
    other.until("rect", seconds + 8, timeout=60)
    screen.look().click("#cut")
    screen.until("rect.recovered", 6)
    screen.until("rect", 55, timeout=60)
    return screen


def notifications(browser: Chrome, port: int) -> Visit:
    """Parcels for Ada, one of which she has seen."""
    senders = [Visit(browser, port, name) for name in ("Ben", "Chen", "Ben")]
    ada = Visit(browser, port, "Ada")
    for number, sender in enumerate(senders, 1):
        sender.write("#to", "Ada")
        sender.click("form:has(#to) button")
        ada.look().until("#list li", number)
    ada.click("#list li:last-child button")
    ada.shows("2", "#count")
    return ada


def cursor(browser: Chrome, port: int) -> Visit:
    """Four visitors, three of whom are seen, one with a click."""
    places = ((-250, -120), (160, 90), (220, -150))
    visits = [Visit(browser, port, f"visitor{number}") for number in range(len(places) + 1)]
    last = visits.pop()
    for visit, (right, down) in zip(visits, places, strict=True):
        board = visit.look().browser.find_element(By.ID, "board")
        ActionChains(browser).move_to_element_with_offset(board, right, down).perform()
    last.look().until(".cursor", len(places))
    return last


def seats(browser: Chrome, port: int) -> Visit:
    """Three visitors who sit, and two of whom point at other seats."""
    visits = [Visit(browser, port, f"visitor{number}") for number in range(4)]
    last = visits.pop()
    for visit, seat, near in zip(visits, ("B3", "B4", "A5"), ("C1", "A2", "C6"), strict=True):
        visit.look().click(f"button[value={seat}]")
        visit.look().until("button.mine", 1)
        button = visit.browser.find_element(By.CSS_SELECTOR, f"button[value={near}]")
        ActionChains(browser).move_to_element(button).perform()
    last.look().until(".cursor", len(visits))
    return last


def todo(browser: Chrome, port: int) -> Visit:
    """Someone else writes a list, and has done a part of it."""
    page = Visit(browser, port, "one")
    other = Visit(browser, port, "other")
    lines = (
        "Order labels",
        "Call the carpenter about desk-4",
        "Pack the parcels for Lisbon",
        "Take desk-4 off the front page",
    )
    for number, line in enumerate(lines, 1):
        other.write("#add [name=title]", line, Keys.ENTER)
        page.look().until("main li", number)
    other.look().click("main li:nth-child(2) button")
    page.look().until("main li.done", 1)
    return page


SCENES: dict[str, Callable[[Chrome, int], Visit]] = {
    "assistant": assistant,
    "chat": chat,
    "cursor": cursor,
    "dashboard": dashboard,
    "notifications": notifications,
    "seats": seats,
    "todo": todo,
}


def photograph(browser: Chrome, name: str, directory: Path) -> None:
    """Play a scene, and write its picture."""
    server = Example(name, directory).serve()
    try:
        visit = SCENES[name](browser, server.port).look()
        visit.size(WIDTH, HEIGHT)
        picture = visit.picture(WIDTH, HEIGHT)
        browser.get("about:blank")  # the policy of the example stops the script that makes it small
        path = HERE / f"example-{name}.png"
        path.write_bytes(reduce(browser, picture))
        print(f"{name}: {path.stat().st_size / 1000:.0f} kB")  # noqa: T201, a script tells what it made
    finally:
        server.discard()


def main() -> None:
    """Photograph all examples."""
    with tempfile.TemporaryDirectory() as directory:
        for name in SCENES:
            with browsing(Path(directory) / f"profile-{name}") as browser:
                photograph(browser, name, Path(directory))


if __name__ == "__main__":
    main()
