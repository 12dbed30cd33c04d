"""The publish page in a browser, in the words of someone who looks at it."""

from __future__ import annotations

from collections.abc import Callable

from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.browser import wait_for
from tests.panel.paths import page_path


class PublishScreen:
    """The page in a browser in which an operator is signed in."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser = browser
        self.address = address

    def open(self, **query: object) -> PublishScreen:
        """Load the page and wait until its script runs."""
        self.browser.get(self.address + page_path("publication", **query))
        self.until(lambda: self._all(".panel-editor.is-ready"), "the editor")
        return self

    def until(self, condition: Callable[[], object], what: str) -> None:
        wait_for(self.browser, condition, what)

    # doing

    def fill(self, channels: str, data: str) -> None:
        """Put texts into both fields, as if they were pasted."""
        script = """
            arguments[0].value = arguments[1];
            arguments[0].dispatchEvent(new Event("input", { bubbles: true }));
        """
        self.browser.execute_script(script, self.channels, channels)
        self.browser.execute_script(script, self.data, data)

    def publish(self) -> None:
        """Press the button and wait for the page that follows."""
        self.leave(lambda: self.button("default").click())

    def submit_without_script(self) -> None:
        """Send the form past the page's script, and wait for the page that follows."""
        form = self.browser.find_element(By.ID, "publish-form")
        self.leave(lambda: self.browser.execute_script("arguments[0].submit()", form))

    def leave(self, act: Callable[[], object]) -> None:
        """Do what leads to the next page, and wait until its script runs."""
        self.browser.execute_script("window.isOld = true")
        act()
        script = "return window.isOld !== true && document.readyState === 'complete'"
        self.until(lambda: self.browser.execute_script(script), "the next page")
        self.until(lambda: self._all(".panel-editor.is-ready"), "the editor")

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        ActionChains(self.browser).send_keys(*keys).perform()

    def focus_tab_of_page(self) -> None:
        """Put the focus on the last thing before the form."""
        script = "document.querySelector('.panel-tabs > :last-child').focus()"
        self.browser.execute_script(script)

    def action(self, name: str) -> None:
        """Press a button of the editor: format, compact."""
        self.browser.find_element(By.CSS_SELECTOR, f"#editor [data-action={name}]").click()

    def rename_owner_of_drafts(self, before: str, after: str) -> None:
        """Make the drafts of one operator those of another."""
        script = """
            const [before, after] = [...arguments].map((name) => `realtime-panel-drafts:${name}`);
            localStorage.setItem(after, localStorage.getItem(before));
            localStorage.removeItem(before);
        """
        self.browser.execute_script(script, before, after)

    # looking

    @property
    def channels(self) -> WebElement:
        return self.browser.find_element(By.NAME, "channel")

    @property
    def data(self) -> WebElement:
        return self.browser.find_element(By.NAME, "data")

    @property
    def texts(self) -> tuple[str, str]:
        """What stands in the two fields."""
        values = [field.get_property("value") for field in (self.channels, self.data)]
        return str(values[0]), str(values[1])

    def button(self, name: str) -> WebElement:
        """A button of the form, by its class or name."""
        selector = f'#publish-form .submit-row :is(.{name}, [name="{name}"])'
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    @property
    def messages(self) -> list[str]:
        return [each.text for each in self._all(".messagelist li")]

    def error_of(self, field: str) -> str:
        return " ".join(each.text for each in self._all(f".field-{field} .errorlist"))

    @property
    def state(self) -> str:
        """What the editor says of its text."""
        return self._text(".panel-editor-state")

    def text_of(self, element_id: str) -> str:
        """The text of an element, seen or not."""
        return str(self.browser.find_element(By.ID, element_id).get_attribute("textContent"))

    @property
    def cursor(self) -> int | None:
        """Characters before the cursor of the editor; None if it is not in there."""
        script = """
            const area = arguments[0];
            return document.activeElement === area ? area.selectionStart : null;
        """
        place: int | None = self.browser.execute_script(script, self.data)
        return place

    @property
    def reach(self) -> str:
        return self._text("#reach")

    @property
    def dialog(self) -> str | None:
        """The text of the question; None while nothing is asked."""
        script = """
            const dialog = document.getElementById("confirm");
            return dialog.open ? dialog.innerText : null;
        """
        text: str | None = self.browser.execute_script(script)
        return text

    @property
    def draft(self) -> str:
        """The offer of a draft; "" where none is made."""
        return self._text("#draft")

    @property
    def suggestions(self) -> list[str]:
        script = "return [...document.querySelectorAll('#known-channels option')].map(o => o.value)"
        found: list[str] = self.browser.execute_script(script)
        return found

    @property
    def kept_in_browser(self) -> str:
        return str(self.browser.execute_script("return JSON.stringify({ ...localStorage })"))

    @property
    def focused(self) -> str:
        """Name, ID or text of what has the focus."""
        script = """
            const { name, id, value, textContent, ariaLabel } = document.activeElement;
            return name || id || ariaLabel || value || textContent.trim();
        """
        return str(self.browser.execute_script(script))

    @property
    def outline(self) -> bool:
        """Whether one sees where the focus is."""
        script = """
            const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
            return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
        """
        return bool(self.browser.execute_script(script))

    def _text(self, selector: str) -> str:
        script = "return document.querySelector(arguments[0]).innerText"
        hidden = "return document.querySelector(arguments[0]).checkVisibility()"
        if not self.browser.execute_script(hidden, selector):
            return ""
        return str(self.browser.execute_script(script, selector))

    def _all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)
