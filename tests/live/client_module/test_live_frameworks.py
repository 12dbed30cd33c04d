"""Live blocks in pages with htmx 4, Alpine, Turbo and Idiomorph, as npm has them."""

from __future__ import annotations

import asyncio

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.js_builds import require_packages
from tests.live.client_module.live_page import LIST, LivePage, gone, put, row, swap
from tests.server import Server


async def click(live: LivePage, selector: str) -> None:
    element = live.browser.find_element(By.CSS_SELECTOR, selector)
    await asyncio.to_thread(element.click)


async def test_htmx_sees_the_rows_that_come(live: LivePage) -> None:
    require_packages("htmx.org")
    answer = LivePage(live.browser, live.server, f"{live.channel}-answer")
    answer.has("<b id='answer'>from the server</b>")
    live.has(LIST.format("", "") + "<p id='out'></p>")
    await live.open("?with=htmx")
    button = (
        f'<button hx-get="/live/page/{answer.channel}" hx-select="#answer" hx-target="#out"'
        ">go</button>"
    )

    await live.publish(put(1, button), put(2, "soon"), put(2, button.replace("go", "again")))
    await live.shows("go", "again")
    await click(live, "li:first-child button")
    await live.shows("from the server", of="#answer")
    await live.run("document.querySelector('#out').replaceChildren()")
    await click(live, "li:last-child button")

    await live.shows("from the server", of="#answer")


@pytest.mark.parametrize("how", ["outerHTML", "outerMorph"])
async def test_htmx_swaps_a_block_that_goes_on(live: LivePage, how: str) -> None:
    """What comes between the query of the new block and its swap is there, too."""
    require_packages("htmx.org")
    button = (
        f'<button hx-get="/live/page/{live.channel}" hx-select="#block" hx-target="#block"'
        f' hx-swap="{how}">go</button>'
    )
    live.has(button + LIST.format("", row(1) + row(2)))
    await live.open("?with=htmx")
    await live.publish(put(3))
    await live.shows("1", "2", "3")
    await live.run(
        """
        const { fetch } = window;
        window.answered = [];
        window.fetch = async (...args) => {
          const response = await fetch(...args);
          await new Promise((resolve) => answered.push(resolve));
          return response;
        };
        """
    )
    live.has(button + LIST.format("", row(2, "two") + row(3)))
    await live.publish(gone(1), put(2, "two"))

    await click(live, "button")
    await live.until("answered.length === 1")
    await live.publish(put(4))
    await live.shows("two", "3", "4")
    await live.run("answered[0]()")
    await live.until("!document.querySelector('.htmx-request')")
    await live.publish(put(5))

    await live.shows("two", "3", "4", "5")
    assert live.requested == 2


@pytest.mark.parametrize("query", ["?with=alpine", "?with=alpine&with=idiomorph&policy=strict"])
async def test_alpine_starts_in_rows_that_come_and_hears_of_them(
    live: LivePage, query: str
) -> None:
    require_packages("@alpinejs/csp")
    counter = (
        '<span x-data="{ count: 0 }"><button @click="count++" x-text="count"></button>{}</span>'
    )
    page = (
        '<main x-data="{ came: 0 }" @realtime:put="came++">{}<output x-text="came"></output></main>'
    )
    live.has(page.replace("{}", LIST.format("", row(1, counter.replace("{}", "old")))))
    await live.open(query)
    await live.shows("0old")

    await live.publish(put(2, counter.replace("{}", "two")))
    await live.shows("0old", "0two")
    await live.shows("1", of="output")
    await click(live, '[data-key="2"] button')
    await click(live, '[data-key="2"] button')
    await live.shows("0old", "2two")
    await live.publish(put(2, counter.replace("{}", "new")))

    # Idiomorph keeps the element, and with it what Alpine knows of it
    await live.shows("0old", "2new" if "idiomorph" in query else "0new")


async def test_turbo_goes_to_pages_with_the_same_block_and_back(
    live: LivePage, unique: str
) -> None:
    require_packages("@hotwired/turbo")
    other = LivePage(live.browser, live.server, f"{live.channel}-other")

    def block(*keys: int) -> str:
        position = f'{{% realtime_channel "{live.channel}" %}}'
        return LIST.format("", "".join(map(row, keys))).replace("[position]", position)

    live.has(
        f'<a href="/live/page/{other.channel}?with=turbo" data-turbo-prefetch="false">on</a>'
        + block(1)
    )
    await live.open("?with=turbo")
    await live.run("window.same = true")
    await live.publish(put(2), swap("append", "<i>once</i>", "p"))
    await live.shows("1", "2")
    other.has("<h1>other</h1>" + block(1, 2))

    await click(live, "a")
    await live.shows("other", of="h1")
    await live.publish(put(3))
    await live.shows("1", "2", "3")
    live.has("<h2>back</h2>" + block(1, 2, 3))
    await asyncio.to_thread(live.browser.back)
    await live.shows("on", of="a")
    await live.publish(put(4))

    await live.shows("1", "2", "3", "4")
    await live.shows("once", of="i")
    assert await live.run("return [same, commands.filter((each) => each === 1).length]") == [
        True,
        1,
    ]
    assert "reset" not in [name for name, _, _ in await live.told()]
    assert [live.requested, other.requested] == [1, 1]


async def test_turbo_morphs_a_page_whose_block_goes_on(live: LivePage) -> None:
    """The state that it fetched is older than the block: what is newer comes again."""
    require_packages("@hotwired/turbo")
    live.has("<h1>old</h1>" + LIST.format("", row(1)))
    await live.open("?with=turbo")
    await live.run(
        """
        window.block = document.querySelector("#block");
        const { fetch } = window;
        window.answered = [];
        window.fetch = async (...args) => {
          const response = await fetch(...args);
          await new Promise((resolve) => answered.push(resolve));
          return response;
        };
        for (const [name, content] of [["method", "morph"], ["scroll", "preserve"]])
          document.head.append(Object.assign(document.createElement("meta"), {
            name: `turbo-refresh-${name}`, content,
          }));
        """
    )
    live.has("<h1>new</h1>" + LIST.format("", row(1)))

    await live.run("Turbo.session.refresh(location.href)")
    await live.until("answered.length === 1")
    await live.publish(put(2))
    await live.shows("1", "2")
    await live.run("answered[0]()")

    await live.shows("new", of="h1")
    await live.shows("1", "2")
    await live.publish(put(3))
    await live.shows("1", "2", "3")
    assert await live.run("return document.querySelector('#block') === block") is True


async def test_page_that_the_browser_kept_goes_on(
    server: Server, keeping_browser: Chrome, unique: str
) -> None:
    live = LivePage(keeping_browser, server, f"rec:{unique}")
    live.has(LIST.format("", row(1)))
    await live.open()
    await live.publish(swap("append", "<i>once</i>", "p"))
    await live.shows("once", of="i")
    await live.run("addEventListener('pageshow', ({ persisted }) => (window.kept = persisted))")

    await asyncio.to_thread(keeping_browser.get, f"{server.address}/client?other")
    await live.publish(put(2))
    await asyncio.to_thread(keeping_browser.back)

    await live.shows("1", "2")
    await live.shows("once", of="i")
    assert await live.run("return kept") is True
    assert live.requested == 1
