"""A page in a real browser whose script tells events: `tests/site/events.js`."""

from __future__ import annotations

from typing import Any

from selenium.webdriver import Chrome


class EventPage:
    """A page of `tests/site/libraries.py`."""

    def __init__(self, browser: Chrome, name: str) -> None:
        """`name`: that of the page."""
        self._browser = browser
        self._name = name

    def open(self, address: str) -> None:
        """Load the page from a server."""
        self._browser.get(f"{address}/libraries/{self._name}/")

    def reload(self) -> None:
        """Load the page anew."""
        self._browser.refresh()

    def run(self, script: str, *arguments: Any) -> Any:
        return self._browser.execute_script(script, *arguments)

    def event(self, name: str) -> Any:
        """Wait for the oldest such event that was not asked for yet; returns its context."""
        script = """
            const [name, done] = arguments;
            next(name).then((context) => done({ context }), ({ message }) => done({ message }));
        """
        answer = self._browser.execute_async_script(script, name)
        assert "context" in answer, answer["message"]
        return answer["context"]
