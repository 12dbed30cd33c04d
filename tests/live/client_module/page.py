"""A page with the client module in a real browser, driven from a test.

    await page.connected(server.socket)
    await page.run("subscribe(args[0])", channel)
    await page.event("sub:publication", channel)

What the page offers to `run` is in tests/site/browser/templates/browser/page.html: `make`
and `subscribe` as those of the module, `subscriptions`, `client` by way of `make`'s result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from selenium.webdriver import Chrome

from tests.browser import leave
from tests.conftest import connection_token
from tests.scripted_server import Script, ScriptedServer
from tests.tcp_proxy import TcpProxy

SCRIPT_TIMEOUT = 60

KEPT = 5
"""Publications kept per channel in the namespace "rec"."""

OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    # a page that connects through a proxy of the test has another origin
    "allowed_origins": ["http://127.0.0.1:*"],
    "namespaces": [
        {"name": "lounge"},
        {"name": "odd"},
        {
            "name": "chat",
            "publish": True,
            "presence": True,
            "join_leave": True,
            "history_size": 10,
            "history_lifetime": 300,
        },
        {
            "name": "rec",
            "publish": True,
            "history_size": KEPT,
            "history_lifetime": 300,
            "history_recover": True,
        },
    ],
}

_RUN = """
    const done = arguments[2];
    const run = new (Object.getPrototypeOf(async () => {}).constructor)("args", arguments[0]);
    run(arguments[1]).then(
      (value) => done({ value: value ?? null }),
      ({ name, code, message }) => done({ name, code: code ?? null, message }),
    );
"""


class PageError(Exception):
    """What ran in the page threw an error with this code and message."""

    def __init__(self, name: str, code: int | None, message: str) -> None:
        super().__init__(name, code, message)
        self.code = code
        self.message = message


class ClientPage:
    """One page. Its client is `client` in scripts, once `make` was called."""

    def __init__(self, browser: Chrome) -> None:
        self._browser = browser
        browser.set_script_timeout(SCRIPT_TIMEOUT)

    async def open(self, address: str, cookies: dict[str, str] | None = None) -> ClientPage:
        """Load the page from a server, as a visitor with these cookies."""
        await asyncio.to_thread(self._open, address, cookies or {})
        return self

    def _open(self, address: str, cookies: dict[str, str]) -> None:
        self._browser.get(address + "/client")
        self._browser.delete_all_cookies()
        for name, value in cookies.items():
            self._browser.add_cookie({"name": name, "value": value})

    async def leave(self) -> list[str]:
        """Leave the page; returns the errors that nobody caught in it."""
        failures: list[str] = await self.run("return failures")
        await asyncio.to_thread(leave, self._browser)
        return failures

    async def run(self, script: str, *args: Any) -> Any:
        """Run the body of an asynchronous function; returns what it returns.

        Raises:
            PageError: it threw.
        """
        answer = await asyncio.to_thread(
            self._browser.execute_async_script, _RUN, script, list(args)
        )
        if "value" in answer:
            return answer["value"]
        raise PageError(**answer)

    async def error(self, script: str, *args: Any) -> int | None:
        """As `run`, for what must throw; returns the error's code."""
        try:
            value = await self.run(script, *args)
        except PageError as error:
            return error.code
        raise AssertionError(f"nothing was thrown: {value}")

    async def promises(self) -> int:
        """How many promises the page holds on to, after a garbage collection."""
        return await asyncio.to_thread(self._promises)

    def _promises(self) -> int:
        def ask(command: str, **parameters: Any) -> Any:
            return self._browser.execute_cdp_cmd(command, parameters)

        prototype = ask("Runtime.evaluate", expression="Promise.prototype")["result"]["objectId"]
        found = ask("Runtime.queryObjects", prototypeObjectId=prototype)["objects"]["objectId"]
        count: int = ask(
            "Runtime.callFunctionOn",
            objectId=found,
            functionDeclaration="function () { return this.length }",
            returnByValue=True,
        )["result"]["value"]
        ask("Runtime.releaseObject", objectId=found)
        return count

    # the usual steps

    async def make(self, url: str, more: str = "{}", /, **options: Any) -> None:
        """A client that is not connected yet; `more`: options that are code."""
        script = f"window.client = make(args[0], {{...args[1], ...{more}}})"
        await self.run(script, url, options)

    async def connect(self) -> dict[str, Any]:
        """Connect, and wait until that is done; returns the context of the event."""
        await self.run("client.connect()")
        return await self.event("connect")

    async def connected(self, url: str, more: str = "{}", /, **options: Any) -> dict[str, Any]:
        """As `make` and `connect`; as user 17, unless a token is given."""
        await self.make(url, more, **{"token": connection_token("17")} | options)
        return await self.connect()

    @asynccontextmanager
    async def scripted(
        self, script: Script, first: str = "", **options: Any
    ) -> AsyncIterator[ScriptedServer]:
        """Connect to a server that does what a script says. `first`: what the page does before."""
        async with ScriptedServer(script) as server:
            await self.make(server.url, **options)
            await self.run(f"{first}; client.connect()")
            yield server

    @asynccontextmanager
    async def away(self, proxy: TcpProxy) -> AsyncIterator[None]:
        """For the length of the block the client has lost its connection, by way of a proxy."""
        proxy.refuse()
        await self.event("disconnect")
        yield
        proxy.allow()

    async def subscribe(self, channel: str, **options: Any) -> dict[str, Any]:
        """Subscribe, and wait until that is done; returns the context of the event."""
        await self.run("subscribe(args[0], args[1])", channel, options)
        return await self.event("sub:subscribed", channel)

    async def event(self, name: str, channel: str | None = None) -> dict[str, Any]:
        """Wait for the oldest such event that was not asked for yet; returns its context."""
        context: dict[str, Any] = await self.run("return next(args[0], args[1])", name, channel)
        return context

    async def events(self, name: str, channel: str | None, count: int) -> list[dict[str, Any]]:
        """Wait for the oldest such events."""
        script = """
            const [name, channel, count] = args;
            const found = [];
            while (found.length < count) found.push(await next(name, channel));
            return found;
        """
        found: list[dict[str, Any]] = await self.run(script, name, channel, count)
        return found

    async def data(self, channel: str, count: int, name: str = "sub:publication") -> list[Any]:
        """Wait for the next publications in a channel; returns their data."""
        return [context["data"] for context in await self.events(name, channel, count)]

    async def unread(self, name: str, channel: str | None = None) -> list[dict[str, Any]]:
        """The contexts of such events that were not asked for."""
        found: list[dict[str, Any]] = await self.run(
            "return unread(args[0], args[1])", name, channel
        )
        return found

    async def sent(self) -> list[list[str]]:
        """The frames sent by WebSocket since the last call, each a list of commands."""
        frames: list[str] = await self.run("return frames.splice(0)")
        return [frame.split("\n") for frame in frames]
