"""The client module in a browser: parts of a page that go on from the position in the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

from tests.conftest import connection_token
from tests.live.api_client import line, post
from tests.live.client_module.page import KEPT, OPTIONS, ClientPage
from tests.live.conftest import NewProxy
from tests.server import Server

PAGE = """
    const { channel, elements, loads = [], hang = false } = args[0];
    for (const each of elements) {
      const element = document.createElement("script");
      element.type = "application/json";
      element.setAttribute("data-realtime-channel", each.name ?? "");
      element.textContent = JSON.stringify(each);
      document.body.append(element);
    }
    window.seen = [];
    window.loads = 0;
    window.errors = [];
    window.go = [];
    const load = async ({ signal }) => {
      const answer = loads[window.loads++];
      if (hang) await new Promise((resolve) => window.go.push(resolve));
      if (answer === "fail") throw new Error("no state");
      if (answer === "refuse") return new Response("", { status: 503 });
      if (signal.aborted) return;
      seen.push("state");
      return answer;
    };
    window.part = client.page(args[0].name ?? channel, {
      publish: ({ data }) => seen.push(data),
      load,
    });
    part.on("error", ({ code, temporary }) => errors.push([code, temporary]));
    subscriptions.set(channel, part);
"""
SEEN = """
    const until = Date.now() + 15000;
    while (seen.length < args[0] && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return seen;
"""
LOADS = """
    const until = Date.now() + 15000;
    while (go.length < args[0] && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return go.length;
"""


def publish(server: Server, channel: str, *values: int) -> None:
    for value in values:
        server.publish(channel, value)


async def epoch_of(page: ClientPage, server: Server, channel: str) -> str:
    """Return the epoch of a channel, as another client learns it."""
    result = await page.run(
        """
        const other = new realtime.Client(args[0], { token: args[1], fallback: false });
        const subscription = other.subscribe(args[2]);
        other.connect();
        await subscription.ready();
        const { epoch } = subscription.position;
        other.disconnect();
        return epoch;
        """,
        server.socket,
        connection_token("17"),
        channel,
    )
    return str(result)


async def start(
    page: ClientPage, server: Server, channel: str, offset: int | None, **more: Any
) -> None:
    """Make a part of the page that goes on from an offset, or knows none."""
    values: dict[str, Any] = {"channel": channel}
    if offset is not None:
        values |= {"offset": offset, "epoch": await epoch_of(page, server, channel)}
    values |= {"name": more.get("name", "")}
    options = {"token": connection_token("17"), "fallback": False, **more.pop("options", {})}
    await page.make(more.pop("url", server.socket), **options)
    await page.run(PAGE, {"channel": channel, "elements": [values], **more})


async def test_part_gets_what_was_published_after_the_position_of_the_page(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1, 2, 3)
    await start(page, server, channel, 1, name="order")
    assert await page.run(SEEN, 2) == [2, 3]
    assert await page.run("return part.channel") == channel, "found by its name in the page"
    publish(server, channel, 4)
    assert await page.run(SEEN, 3) == [2, 3, 4]
    assert await page.run("return loads") == 0


async def test_part_goes_on_from_the_oldest_of_several_positions(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1, 2, 3)
    epoch = await epoch_of(page, server, channel)
    elements = [{"channel": channel, "offset": offset, "epoch": epoch} for offset in (2, 1, 3)]
    await page.make(server.socket, token=connection_token("17"), fallback=False)
    await page.run(PAGE, {"channel": channel, "elements": elements})
    assert await page.run(SEEN, 2) == [2, 3]


async def test_part_without_a_position_loads_the_state(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1, 2)
    await start(page, server, channel, None)
    assert await page.run(SEEN, 1) == ["state"]
    publish(server, channel, 3)
    assert await page.run(SEEN, 2) == ["state", 3]
    assert await page.run("return loads") == 1


async def test_what_comes_while_the_state_is_loaded_is_applied_afterwards(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, *range(1, KEPT + 3))

    await start(page, server, channel, 1, hang=True)  # history does not reach back
    assert await page.run(LOADS, 1) == 1
    publish(server, channel, 20, 21)
    await page.run("await part.publish(22)")  # its reply comes after the publications
    assert await page.run("return seen") == []
    await page.run("go[0]()")

    assert await page.run(SEEN, 4) == ["state", 20, 21, 22]
    publish(server, channel, 23)
    assert await page.run(SEEN, 5) == ["state", 20, 21, 22, 23]
    assert await page.run("return loads") == 1


async def test_state_with_a_position_covers_what_was_kept_back_before_it(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1)
    epoch = await epoch_of(page, server, channel)
    await start(page, server, channel, None, hang=True, loads=[{"offset": 2, "epoch": epoch}])
    assert await page.run(LOADS, 1) == 1
    await page.run("await part.publish(2); await part.publish(3)")
    await page.run("go[0]()")
    assert await page.run(SEEN, 2) == ["state", 3]


async def test_state_is_loaded_again_after_a_failure(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1)
    await start(page, server, channel, None, loads=["fail", "refuse", None])
    assert await page.run(SEEN, 1) == ["state"]
    assert await page.run("return errors") == [[7, True], [7, True]]


async def test_state_that_came_too_late_is_not_shown(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1)
    options = {"timeouts": {"load": 1000}}
    await start(page, server, channel, None, hang=True, options=options)
    assert await page.run(LOADS, 2) == 2
    await page.run("go[0]()")
    await page.run("go[1]()")
    assert await page.run(SEEN, 1) == ["state"]
    assert await page.run("return errors") == [[7, True]]


async def test_state_of_a_part_that_was_unsubscribed_is_not_shown(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1)
    await start(page, server, channel, None, hang=True)
    assert await page.run(LOADS, 1) == 1
    await page.run("part.unsubscribe(); part.subscribe(); go[0]()")
    assert await page.run(LOADS, 2) == 2
    await page.run("part.unsubscribe(); go[1](); await new Promise((done) => setTimeout(done))")
    assert await page.run("return [seen, errors, loads]") == [[], [], 2]


async def test_state_is_loaded_again_when_too_many_publications_came_meanwhile(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1)
    await start(page, server, channel, None, hang=True)
    assert await page.run(LOADS, 1) == 1

    await burst(page, server, channel, 1001)
    await page.run("go[0]()")
    assert await page.run(LOADS, 2) == 2, "after an error, and a delay"
    await burst(page, server, channel, 1001)  # the second load may take more of them
    await page.run("go[1]()")

    seen = await page.run(SEEN, 1003)
    assert (seen[0], len(seen)) == ("state", 1003)
    assert await page.run("return errors") == [[7, True]]


async def burst(page: ClientPage, server: Server, channel: str, count: int) -> None:
    """Publish that many and one more, and wait until the page has received them."""
    commands = line("publish", {"channel": channel, "data": 0}) * count
    await asyncio.to_thread(post, server, commands)
    await page.run("await part.publish(0)")


async def test_state_that_was_loaded_before_a_loss_is_loaded_again(
    page: ClientPage, server: Server, new_proxy: NewProxy, channel: str
) -> None:
    publish(server, channel, 1)
    proxy = await new_proxy(server)
    await start(page, server, channel, None, hang=True, url=proxy.url)
    assert await page.run(LOADS, 1) == 1

    async with page.away(proxy):
        publish(server, channel, *range(2, KEPT + 4))
    await page.run("await part.ready(); go[0]()")
    assert await page.run(LOADS, 2) == 2
    await page.run("go[1]()")

    assert await page.run(SEEN, 2) == ["state", "state"]
    publish(server, channel, 30)
    assert await page.run(SEEN, 3) == ["state", "state", 30]


async def test_part_that_comes_later_loads_the_state_if_the_channel_went_on(
    page: ClientPage, server: Server, channel: str
) -> None:
    publish(server, channel, 1)
    await start(page, server, channel, 1)
    publish(server, channel, 2)
    assert await page.run(SEEN, 1) == [2]
    await page.run(PAGE, {"channel": channel, "elements": []})
    assert await page.run(SEEN, 1) == ["state"]


async def test_position_is_read_from_a_header(page: ClientPage) -> None:
    script = "return realtime.positionOf(new Response('', {headers: args[1]}), args[0])"
    values = [
        {"channel": "a,b", "offset": 1, "epoch": "e"},
        {"channel": "ä", "offset": 2, "epoch": "f"},
    ]
    header = {"Realtime-Position": ", ".join(json.dumps(each) for each in values)}

    assert await page.run(script, "ä", header) == {"offset": 2, "epoch": "f"}
    assert await page.run(script, "a,b", header) == {"offset": 1, "epoch": "e"}
    assert await page.run(script, "c", header) is None
    assert await page.run(script, "c", {}) is None
    assert await page.run(script, "c", {"Realtime-Position": "{"}) is None


async def test_page_older_than_history_is_reloaded_once(
    serve: Callable[..., Server], site: dict[str, str], chromium: Chrome, channel: str
) -> None:
    """A cache gives the old page once; what the site renders is fresh."""
    server = serve(environment=site, **OPTIONS, page_margin=0)
    publish(server, channel, *range(1, KEPT + 4))

    await asyncio.to_thread(chromium.get, f"{server.address}/client/cached?channel={channel}")
    page = ClientPage(chromium)

    await asyncio.to_thread(
        wait_for,
        chromium,
        "return window.part?.state === 'subscribed'"
        " && document.getElementById('requests').textContent === '2'",
    )
    publish(server, channel, 50)
    await asyncio.to_thread(wait_for, chromium, "return window.seen.at(-1) === 50")
    assert await page.run("return document.getElementById('requests').textContent") == "2"


async def test_page_that_the_browser_kept_gets_what_it_missed(
    server: Server, keeping_browser: Chrome, channel: str
) -> None:
    """To go back shows the page as it was left, with its script; its connection is closed."""
    publish(server, channel, 1)
    page = await ClientPage(keeping_browser).open(server.address)
    await start(page, server, channel, 1)
    publish(server, channel, 2)
    assert await page.run(SEEN, 1) == [2]
    await page.run("addEventListener('pageshow', ({ persisted }) => (window.kept = persisted))")

    await asyncio.to_thread(keeping_browser.get, f"{server.address}/client?other")
    publish(server, channel, 3, 4)
    await asyncio.to_thread(keeping_browser.back)

    assert await page.run("return kept") is True
    assert await page.run(SEEN, 3) == [2, 3, 4]
    assert await page.run("return [loads, errors]") == [0, []]


def wait_for(browser: Chrome, script: str) -> None:
    WebDriverWait(browser, 20).until(lambda found: found.execute_script(script))
