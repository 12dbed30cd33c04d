"""The inspector in a browser: what it shows of a client, and what it leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.client_module.live_page import LIST, LivePage
from tests.live.client_module.page import ClientPage
from tests.live.conftest import NewProxy
from tests.server import Server

BEFORE_CLIENTS = """
    const script = document.createElement("script");
    script.dataset.realtimeInspector = "";
    script.type = "module";
    script.src = "/static/realtime/inspect.js";
    const loaded = new Promise((resolve) => (script.onload = resolve));
    document.head.append(script);
    await loaded;
    const { children } = document.documentElement;
    window.overlays = () => [...children].filter((each) => each.shadowRoot);
    window.shown = () => overlays()[0]?.shadowRoot.querySelector(".panel");
"""
UNTIL = "while (!(%s)) await new Promise(requestAnimationFrame)"
TEXTS = """
    for (const details of shown().querySelectorAll("details")) details.open = true;
    await new Promise((resolve) => setTimeout(resolve)); // they are written by an event
    return shown().textContent;
"""
ROWS = """
    return [...shown().querySelectorAll("tbody tr")]
      .map((row) => [...row.children].map((cell) => cell.textContent));
"""


async def test_inspector_shows_what_a_client_does(
    server: Server, new_proxy: NewProxy, page: ClientPage, unique: str
) -> None:
    proxy = await new_proxy(server)
    channel, token = f"rec:{unique}", connection_token("17")
    await page.run(BEFORE_CLIENTS)
    await page.connected(proxy.url, token=token, fallback=False)
    await page.subscribe(channel)
    async with page.away(proxy):
        server.publish(channel, {"text": "missed", "token": "of the site"})
    await page.event("connect")
    await page.data(channel, 1)
    await page.run("client.ping()")
    await page.run(UNTIL % "shown().querySelector('p').textContent.includes('ping')")

    text = await page.run(TEXTS)
    [[name, state, position, recovered]] = await page.run(ROWS)

    assert (name, state, recovered) == (channel, "subscribed", "1 (last: 1)")
    assert position.startswith("1 of ")
    assert "connected · websocket · ping " in text
    assert "↑ connect" in text
    assert f"↓ reply to subscribe {channel}" in text
    assert '"missed"' in text
    assert token not in text
    assert "of the site" not in text
    assert "disconnected" in text


async def test_inspector_is_bounded_and_leaves_nothing(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.run(BEFORE_CLIENTS)
    await page.connected(server.socket)
    await page.run("for (let i = 0; i < 300; i++) client.send(i)")
    await page.run(UNTIL % "shown().textContent.includes('Frames (30')")

    frames = await page.run("return shown().querySelectorAll('ol')[0].children.length")
    await page.run("""
        const escape = new KeyboardEvent("keydown", { key: "Escape", bubbles: true });
        shown().querySelector("button").dispatchEvent(escape);
    """)
    await page.subscribe(unique)

    assert frames == 200
    assert await page.run("return overlays().length") == 0
    await page.run("client.disconnect()")


@pytest.mark.parametrize("policy", ["strict", "types"])
async def test_inspector_obeys_a_strict_policy(live: LivePage, policy: str) -> None:
    live.has(LIST.format("", ""))
    await live.open(f"?policy={policy}")

    found: Any = await live.run("""
        const refused = [];
        const note = ({ blockedURI }) => refused.push(blockedURI);
        document.addEventListener("securitypolicyviolation", note);
        const { inspect } = await import("/static/realtime/inspect.js");
        const { liveClient } = await import("/static/realtime/live.js");
        const inspector = inspect(liveClient());
        const same = inspect(liveClient()) === inspector;
        const host = [...document.documentElement.children].find((each) => each.shadowRoot);
        const { position } = getComputedStyle(host);
        await new Promise((resolve) => setTimeout(resolve));
        inspector.close();
        return { same, position, refused, left: host.isConnected };
    """)

    assert found == {"same": True, "position": "fixed", "refused": [], "left": False}
