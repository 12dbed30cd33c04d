"""A browser that notes everything on the panel's pages that injected markup would do."""

from __future__ import annotations

from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import console, wait_for

MARKUP = "\"'><script>hit(1)</script><img src=/hit onerror=hit(2)><svg onload=hit(3)>"
"""Markup that runs where it is not escaped: in text, in attributes of either quote."""

ADDRESS = "javascript:hit(4)//?#&%41%00../\\\\evil.example"
"""What would run as a link, or lead elsewhere."""

_PRELUDE = """
window.hits = [];
window.hit = (number) => window.hits.push(`hit ${number}`);
for (const name of ["alert", "confirm", "prompt"]) window[name] = window.hit;
addEventListener("securitypolicyviolation", (event) => {
  window.hits.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""

_LOOK = """
const found = [...window.hits];
for (const { name } of performance.getEntriesByType("resource")) {
  const url = new URL(name);
  if (url.origin !== location.origin || url.pathname === "/hit") found.push(`loaded ${name}`);
}
for (const element of document.querySelectorAll("*")) {
  const tag = element.localName;
  const isOurs = tag !== "script" || element.src.startsWith(`${location.origin}/static/`);
  if (!isOurs || ["img", "iframe", "object", "embed", "base"].includes(tag)) found.push(tag);
  for (const { name, value } of element.attributes) {
    if (name.startsWith("on") || /^\\s*javascript:/i.test(value) && name !== "value"
        && !name.startsWith("data-")) found.push(`${tag} ${name}=${value}`);
    if (["href", "action"].includes(name)
        && new URL(value, location).origin !== location.origin) found.push(`${tag} ${value}`);
  }
}
return found;
"""


class Watched:
    """The browser, at one site."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser = browser
        self.address = address
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _PRELUDE})

    def open(self, path: str) -> None:
        """Load a page."""
        self.browser.get(self.address + path)

    def until(self, condition: Any, what: str) -> None:
        """Wait until the page shows something."""
        wait_for(self.browser, condition, what)

    def shows(self, selector: str, text: str) -> bool:
        """Whether a part of the page holds a text, letter by letter."""
        script = """
            return [...document.querySelectorAll(arguments[0])]
                .map((e) => e.matches("li") ? e.textContent : e.value ?? e.textContent)
                .some((text) => text.includes(arguments[1]));
        """
        return bool(self.browser.execute_script(script, selector, text))

    def click(self, selector: str) -> None:
        """Click on the first of these."""
        self.browser.find_element(By.CSS_SELECTOR, selector).click()

    def fill(self, selector: str, text: str) -> None:
        """Put a text into a field, as if it was pasted."""
        script = """
            const field = document.querySelector(arguments[0]);
            field.value = arguments[1];
            field.dispatchEvent(new Event("input", { bubbles: true }));
            field.dispatchEvent(new Event("change", { bubbles: true }));
        """
        self.browser.execute_script(script, selector, text)

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page."""
        return self.browser.execute_script(script, *arguments)

    def found(self) -> list[str]:
        """What was run, blocked or loaded on this page, or would be."""
        found: list[str] = self.browser.execute_script(_LOOK)
        # a page that says that there is no such thing has this status, and is written down so
        return found + [line for line in console(self.browser) if "status of 404" not in line]
