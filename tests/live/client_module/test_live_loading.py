"""The module live.js in a browser: elements that are loaded, moved, shared and copied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from selenium.webdriver import Chrome

from tests.live.client_module.live_page import LIST, LivePage, gone, put, row, swap
from tests.live.client_module.page import KEPT, OPTIONS
from tests.live.conftest import NewProxy
from tests.server import Server

UNSUBSCRIBE, SUB_REFRESH = 2, 11
"""Commands, as numbers."""


async def test_element_is_loaded_again_when_publications_are_missing(
    live: LivePage, new_proxy: NewProxy
) -> None:
    """What comes while it is loaded is applied to what was loaded."""
    proxy = await new_proxy(live.server)
    live.has(LIST.format("", row(1) + row(2)))
    await live.open(address=proxy.url.replace("ws", "http", 1).partition("/connection")[0])
    await live.run("window.gates = []")

    proxy.refuse()
    await live.publish(*[put(number) for number in range(3, 4 + KEPT)], gone(1), put(2, "two"))
    rows = "".join(map(row, range(3, 4 + KEPT)))
    live.has(LIST.format("", row(2, "two") + "<script>ran.push(1)</script>" + rows))
    proxy.allow()
    await live.until("gates.length === 1", "the request for the block")
    await live.publish(put(2, "newer"), put(20))
    await live.run("gates[0]()")

    await live.shows("newer", *map(str, range(3, 4 + KEPT)), "20")
    assert "reset" in [name for name, _, _ in await live.told()]
    assert await live.run("return document.querySelectorAll('#block script').length") == 1
    assert live.requested == 2


async def test_element_that_cannot_be_loaded_is_tried_again(live: LivePage) -> None:
    """At first the answer is an error, then a page without the block."""
    live.has(LIST.format("", row(1)))
    await live.open()
    await live.run(
        """
        const { fetch } = window;
        const answers = [new Response("", { status: 503 }), new Response("<p>Log in</p>")];
        window.fetch = async (...args) => answers.shift() ?? fetch(...args);
        """
    )
    live.has(LIST.format("", row(1, "one")))

    await live.publish({"op": "put", "key": "1"})

    await live.shows("one")
    errors = [detail for name, _, detail in await live.told() if name == "error"]
    assert ["status 503" in errors[0], "no element" in errors[1], len(errors)] == [True, True, 2]


async def test_element_is_loaded_once_for_many_keys_that_come_alone(live: LivePage) -> None:
    live.has(LIST.format("", row(1)))
    await live.open()
    await live.run("window.gates = []")
    live.has(LIST.format("", row(1) + row(2) + row(3)))
    await live.publish(*[{"op": "put", "key": str(key)} for key in (2, 3)])
    await live.until("told.filter(([name]) => name === 'put').length === 2 && gates.length === 1")
    await live.run("gates[0]()")
    await live.shows("1", "2", "3")
    assert live.requested == 2


TWO = (
    '<realtime-live id="list">[position]{}</realtime-live>'
    '<realtime-live id="other">[position]{}</realtime-live>'
)


async def test_elements_of_a_channel_share_a_subscription_until_the_last_is_removed(
    live: LivePage,
) -> None:
    live.has(TWO.format(row(1), row(1)))
    await live.open()

    await live.publish(put(1, "one"))
    await live.shows("one", "one")
    await live.run("document.querySelector('#list').remove()")
    await live.publish(put(1, "two"))
    await live.shows("two")
    assert await live.run("return commands.filter((each) => each === 1).length") == 1
    assert UNSUBSCRIBE not in await live.run("return commands")

    await live.run("document.querySelector('#other').remove()")

    await live.until(f"commands.includes({UNSUBSCRIBE})")


async def test_element_that_is_moved_goes_on_and_one_that_returns_recovers(live: LivePage) -> None:
    live.has(LIST.format("", row(1)) + "<main></main>")
    await live.open()
    await live.publish(put(1, "one"))
    await live.shows("one")

    await live.run("document.querySelector('main').append(document.querySelector('#block'))")
    await live.publish(put(2))
    await live.shows("one", "2")
    assert UNSUBSCRIBE not in await live.run("return commands")

    await live.run("window.block = document.querySelector('#block'); block.remove()")
    await live.until(f"commands.includes({UNSUBSCRIBE})")
    await live.publish(put(3))
    await live.run("document.body.append(block)")

    await live.shows("one", "2", "3")
    assert live.requested == 1


async def test_new_rendering_of_an_element_gets_what_it_lacks(live: LivePage) -> None:
    """As libraries put it into the page: a new element, or the same with new children."""
    live.has(LIST.format("", row(1)))
    await live.open()
    await live.run("window.first = document.querySelector('#block').outerHTML")
    await live.publish(put(2), put(3))
    await live.shows("1", "2", "3")

    await live.run("document.querySelector('#block').outerHTML = first")
    await live.shows("1", "2", "3")
    await live.run(
        "const block = document.querySelector('#block'); block.innerHTML = first.slice("
        "first.indexOf('>') + 1, first.lastIndexOf('<'))"
    )
    await live.shows("1", "2", "3")

    assert live.requested == 1
    assert await live.run("return commands.filter((each) => each === 1).length") == 1


async def test_copy_of_the_page_goes_on_where_it_was_made(live: LivePage) -> None:
    """What has no key would be there twice otherwise."""
    live.has('<realtime-live id="block">[position]<p>0</p></realtime-live>')
    await live.open()
    await live.publish(swap("append", "<p>1</p>"))
    await live.shows("0", "1", of="p")

    await live.run("window.copy = document.body.cloneNode(true); document.body.innerHTML = ''")
    await live.until(f"commands.includes({UNSUBSCRIBE})")
    await live.publish(swap("append", "<p>2</p>"))
    await live.run("document.body.replaceWith(copy)")

    await live.shows("0", "1", "2", of="p")
    assert live.requested == 1


async def test_element_of_an_address_of_its_own_is_loaded_from_there(live: LivePage) -> None:
    other = LivePage(live.browser, live.server, f"{live.channel}-fragment")
    body = '{{% live "{}" src="/live/page/{}" id="block" %}}{}{{% endlive %}}'
    live.has(body.format(live.channel, other.channel, row(1)))
    other.has(body.format(live.channel, other.channel, row(1, "from there")))
    await live.open()
    await live.publish({"op": "put", "key": "1"})
    await live.shows("from there")
    assert [live.requested, other.requested] == [1, 1]


async def test_refused_channel_is_told(live: LivePage) -> None:
    live.has(
        '<realtime-live id="block"><script type="application/json" data-realtime-channel>'
        '{"channel": "nowhere:1"}</script></realtime-live>'
    )
    await live.open()
    await live.until("told.some(([name]) => name === 'error')")


async def test_token_of_the_page_is_used_and_a_new_one_is_loaded(live: LivePage) -> None:
    """The first one ends soon. The element is loaded then, for the token that it has."""
    channel = f"${live.channel}"
    live.has(
        '<realtime-live id="block"><script type="application/json" data-realtime-channel>'
        f'{{"channel": "{channel}", "token": "{{{{ token_that_ends }}}}"}}</script></realtime-live>'
    )

    await live.open()

    await live.until(f"commands.includes({SUB_REFRESH})")
    await asyncio.to_thread(live.server.publish, channel, put(1))
    await live.shows("1")
    assert [name for name, _, _ in await live.told() if name == "error"] == []


async def test_page_that_slept_while_it_connected_connects_again(
    serve: Callable[..., Server], site: dict[str, str], chromium: Chrome, unique: str
) -> None:
    """The server closes its connection, and advises to stay away. The first frame is lost here."""
    server = serve(environment=site, **OPTIONS, client_stale_close_delay=1)
    live = LivePage(chromium, server, f"rec:{unique}")
    live.has(LIST.format("", row(1)))
    await live.open("?mute")
    await live.publish(put(2))
    await live.shows("1", "2")
