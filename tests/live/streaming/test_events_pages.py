"""The examples of docs/events.md at work: Chromium, htmx from npm, curl."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from selenium.webdriver import Chrome

from realtime.testing import capture
from tests.browser import wait_for
from tests.conftest import connection_token, require
from tests.js_builds import DIRECTORY, require_packages
from tests.live.streaming.listeners import address
from tests.server import ROOT, Server, wait_until
from tests.tcp_proxy import TcpProxy

TEXT = (ROOT / "docs" / "events.md").read_text()

SHOWN = "return window.shown"
RECORD = """
    window.shown = [];
    window.show = (value) => shown.push(value);
    window.update = (value) => shown.push({ update: value });
"""


def blocks(language: str, channel: str) -> list[str]:
    """The examples in a language, for this channel in place of theirs."""
    found = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return [block.replace("news:sports", channel) for block in found]


def options() -> dict[str, Any]:
    """The options of the first example, for visitors without a login."""
    names: dict[str, Any] = {}
    exec(blocks("python", "")[0], names)
    settings: dict[str, Any] = names["REALTIME"]
    namespaces = [{**each, "anonymous": True} for each in settings["namespaces"]]
    return {**settings, "namespaces": namespaces, "anonymous": True, "client_anonymous": True}


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**options())


@pytest.fixture(scope="module")
def chromium(clean_browser: Chrome) -> Chrome:
    return clean_browser


@pytest.fixture
async def page(
    server: Server, chromium: Chrome, new_proxy: Callable[[Server], Awaitable[TcpProxy]]
) -> TcpProxy:
    """An empty page of the server in the browser, by way of this proxy."""
    proxy = await new_proxy(server)
    origin = re.sub(r"^ws(://[^/]+).*", r"http\1", proxy.url)
    await asyncio.to_thread(chromium.get, f"{origin}/hello")
    return proxy


async def listened(server: Server, channel: str) -> None:
    """Wait until somebody listens to a channel."""
    await asyncio.to_thread(
        wait_until,
        lambda: channel in server.api("channels")["result"]["channels"],
        what="a listener",
    )


async def run(chromium: Chrome, script: str, *arguments: object) -> Any:
    return await asyncio.to_thread(chromium.execute_script, script, *arguments)


async def until(chromium: Chrome, script: str, value: object) -> None:
    """Wait until a script returns this value."""
    await asyncio.to_thread(
        wait_for, chromium, lambda: chromium.execute_script(script) == value, f"{script}: {value}"
    )


async def test_event_source_comes_back_and_misses_nothing(
    server: Server, chromium: Chrome, page: TcpProxy, unique: str
) -> None:
    channel = f"news:{unique}"
    await run(chromium, RECORD + blocks("js", channel)[0])
    await listened(server, channel)
    server.publish(channel, {"number": 0})
    await until(chromium, SHOWN, [{"number": 0}])

    page.refuse()
    for number in (1, 2):
        server.publish(channel, {"number": number})
    page.allow()
    await until(chromium, SHOWN, [{"number": number} for number in range(3)])
    server.publish(channel, {"number": 3})

    await until(chromium, SHOWN, [{"number": number} for number in range(4)])


async def test_event_source_gets_each_channel_by_its_name(
    server: Server, chromium: Chrome, page: TcpProxy, unique: str
) -> None:
    channel = f"news:{unique}"
    await run(chromium, RECORD + blocks("js", channel)[1].replace("scores", f"scores-{unique}"))
    await listened(server, f"scores-{unique}")
    server.publish(channel, "a\nb")
    server.publish(f"scores-{unique}", [1, 0])
    await until(chromium, SHOWN, ["a\nb", {"update": [1, 0]}])


async def test_event_source_gives_up_when_it_was_disconnected(
    server: Server, chromium: Chrome, page: TcpProxy, unique: str
) -> None:
    path = address(f"news:{unique}", token=connection_token(unique))
    script = f"""
        const source = window.source = new EventSource({json.dumps(path)});
        source.addEventListener("disconnect", (event) => shown.push(JSON.parse(event.data)));
    """
    given_up = blocks("js", "")[2].replace("location.reload()", "shown.push('reload')")
    await run(chromium, RECORD + script + given_up.replace("30_000", "0"))
    await listened(server, f"news:{unique}")
    await until(chromium, "return source.readyState", 1)
    server.api("disconnect", user=unique)

    await until(chromium, SHOWN, [{"code": 3503, "reason": "force disconnect"}, "reload"])


async def test_htmx_adds_what_comes_and_misses_nothing(
    server: Server, chromium: Chrome, page: TcpProxy, unique: str
) -> None:
    require_packages("htmx.org")
    channel = f"news:{unique}"
    (block,) = blocks("html", channel)
    distribution = DIRECTORY / "node_modules" / "htmx.org" / "dist"

    def source(script: re.Match[str]) -> str:
        text = next(distribution.rglob(script[1])).read_text()
        assert "</script" not in text
        return f"<script>{text}</script>"

    html, number = re.subn(r'<script src="/static/([\w.-]+)"></script>', source, block)
    assert number == 2
    load = """
        document.open();
        document.write("<!DOCTYPE html><body>" + arguments[0]);
        document.close();
        window.ended = [];
        document.body.addEventListener("htmx:sse:close", ({ detail }) => ended.push(detail.reason));
    """
    items = 'return [...document.querySelectorAll("ol > li")].map((item) => item.textContent)'
    await run(chromium, load, html)
    await listened(server, channel)
    server.publish(channel, "<li>zero</li>")
    await until(chromium, items, ["zero"])

    page.refuse()
    server.publish(channel, "<li>one\n&amp; a half</li>")
    server.publish(channel, "<li>two</li>")
    page.allow()
    await until(chromium, items, ["zero", "one\n& a half", "two"])
    server.publish(channel, "<li>three</li>")

    await until(chromium, items, ["zero", "one\n& a half", "two", "three"])
    assert await run(chromium, "return ended") == []


async def test_curl_gets_events(server: Server, unique: str) -> None:
    require("curl", "Debian: apt-get install curl")
    channel = f"news:{unique}"
    (block,) = blocks("sh", channel)
    command = block.replace("https://example.org", server.address)
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        env={"TOKEN": connection_token("17"), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as curl:
        await listened(server, channel)
        server.publish(channel, {"title": "Hello"})
        assert curl.stdout is not None
        lines = iter(curl.stdout.readline, "")
        data = await asyncio.to_thread(next, (line for line in lines if line.startswith("data")))
        curl.terminate()

    assert data == 'data: {"title":"Hello"}\n'


def test_html_is_published_as_a_text(unique: str) -> None:
    with capture() as outbox:
        exec(blocks("python", unique)[1], {"title": "<b>"})
    assert [(each.channel, each.data) for each in outbox] == [(unique, "<li>&lt;b&gt;</li>")]


def test_examples_are_those_that_are_tried() -> None:
    languages = re.findall(r"^```(\w+)$", TEXT, re.MULTILINE)
    assert sorted(languages) == ["html", "js", "js", "js", "python", "python", "sh"]
