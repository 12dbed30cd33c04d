"""A page with live elements in a real browser, driven from a test."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from selenium.webdriver import Chrome

from tests.browser import wait_for
from tests.server import Server

_RUN = """
    const [args, done] = arguments;
    (async () => {{ {script} }})().then(
      (value) => done({{ value: value ?? null }}),
      (error) => done({{ error: String(error) }}),
    );
"""
LIST = '<realtime-live id="block"{}>[position]<ul data-rows>{}</ul><p>end</p></realtime-live>'


def row(key: str | int, text: str = "", more: str = "") -> str:
    return f'<li data-key="{key}"{more}>{text or key}</li>'


def put(key: str | int, text: str = "", more: str = "") -> dict[str, str]:
    return {"op": "put", "key": str(key), "html": row(key, text, more)}


def gone(key: str | int) -> dict[str, str]:
    return {"op": "remove", "key": str(key)}


def swap(how: str, html: str = "", target: str | None = None) -> dict[str, str]:
    return {"op": "swap", "swap": how, "html": html} | ({"target": target} if target else {})


class LivePage:
    """A page of `tests/site/browser/live.py`, whose name is that of its channel, too."""

    def __init__(self, browser: Chrome, server: Server, channel: str) -> None:
        self.browser = browser
        self.server = server
        self.channel = channel

    def has(self, body: str) -> None:
        """Say what the server renders from now on. `[position]` stands for the tag."""
        body = body.replace("[position]", "{% realtime_channel name %}")
        httpx.post(f"{self.server.address}/live/write/{self.channel}", json=body, timeout=20)

    @property
    def requested(self) -> int:
        """How often the page was asked for."""
        address = f"{self.server.address}/live/write/{self.channel}"
        found: int = httpx.post(address, timeout=20).json()["requested"]
        return found

    def is_followed(self) -> bool:
        """Whether the server has subscribed a client to the channel."""
        return self.channel in self.server.api("channels")["result"]["channels"]

    async def open(self, query: str = "", address: str = "") -> LivePage:
        """Load the page, and wait until it follows the channel."""
        where = f"{address or self.server.address}/live/page/{self.channel}{query}"
        await asyncio.to_thread(self.browser.get, where)
        await self.until("commands.includes(1)", "the subscription")
        return self

    async def run(self, script: str, *args: Any) -> Any:
        """Run the body of an asynchronous function; returns what it returns."""
        found = await asyncio.to_thread(
            self.browser.execute_async_script, _RUN.format(script=script), list(args)
        )
        assert "error" not in found, found["error"]
        return found["value"]

    async def until(self, condition: str, what: str = "", *args: Any) -> None:
        """Wait until an expression is true in the page."""

        def look() -> object:
            return self.browser.execute_script(f"const args = arguments; return {condition}", *args)

        await asyncio.to_thread(wait_for, self.browser, look, what or condition)

    async def shows(self, *texts: str, of: str = "[data-key]") -> None:
        """Wait until the elements of a selector have these texts."""
        same = (
            "JSON.stringify([...document.querySelectorAll(args[0])]"
            ".map((each) => each.textContent.trim())) === JSON.stringify(args[1])"
        )
        await self.until(same, f"{texts}", of, list(texts))

    async def publish(self, *data: Any) -> None:
        """Publish, without waiting for the page."""
        for each in data:
            await asyncio.to_thread(self.server.publish, self.channel, each)

    async def told(self) -> list[list[Any]]:
        """The events of the blocks so far: name, ID of the block, detail."""
        found: list[list[Any]] = await self.run("return told")
        return found
