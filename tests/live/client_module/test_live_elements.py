"""The module live.js in a browser: what publications do to a live element."""

from __future__ import annotations

import asyncio

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from tests.browser import console
from tests.js_builds import require_packages
from tests.live.client_module.live_page import LIST, LivePage, gone, put, row, swap
from tests.live.client_module.page import KEPT


async def test_rows_are_put_replaced_and_removed(live: LivePage) -> None:
    live.has(LIST.format("", row(1) + row(2)))
    await live.open("?policy=types")
    console(live.browser)
    await live.publish(put(3), put(1, "one"), gone(2), gone("none"))
    await live.publish({"op": "put", "key": 'it\'s "4"\\\n', "html": "\n<li>four</li>"})
    await live.shows("one", "3", "four", of="ul > li")
    assert [name for name, _, _ in await live.told()] == ["put", "put", "remove", "remove", "put"]
    assert await live.run("return document.querySelector('#block').lastChild.textContent") == "end"
    assert console(live.browser) == []


async def test_page_gets_what_was_published_after_its_query(live: LivePage) -> None:
    """The position in the page is older than its query; a repeat changes nothing."""
    live.has(LIST.format("", row(1)))
    await live.publish(put(1, "old"), put(2))
    live.has(LIST.format("", row(1, "new") + row(2)))
    await live.publish(put(1, "new"))
    await live.open()
    await live.publish(put(3))
    await live.shows("new", "2", "3")


@pytest.mark.parametrize(
    ("attributes", "rows", "published", "shown"),
    [
        (' data-add="prepend"', row(1), [put(2), put(3)], ["3", "2", "1"]),
        ("", "<li>head</li>" + row(1) + "<li>foot</li>", [put(2)], ["head", "1", "2", "foot"]),
        ("", "", [put(2)], ["2"]),
        (
            "",
            row(1, "", ' data-order="9"') + row(2, "", ' data-order="10"'),
            [put(3, "", ' data-order="9.5"'), put(1, "", ' data-order="11"')],
            ["3", "2", "1"],
        ),
        (
            ' data-add="prepend"',
            row(1, "", ' data-order="b"') + row(2, "", ' data-order="a"'),
            [put(3, "", ' data-order="ab"'), put(4, "", ' data-order=""')],
            ["1", "3", "2", "4"],
        ),
    ],
    ids=["newest first", "among others", "into an empty list", "by number", "by text, backwards"],
)
async def test_rows_come_where_they_belong(
    live: LivePage, attributes: str, rows: str, published: list[object], shown: list[str]
) -> None:
    live.has(LIST.format(attributes, rows))
    await live.open()
    await live.publish(*published)
    await live.shows(*shown, of="ul > li")


async def test_html_is_swapped(live: LivePage) -> None:
    live.has(
        '<realtime-live id="block">[position]<p id="a">a</p><p id="b">b</p></realtime-live>'
        '<p id="outside">outside</p>'
    )
    await live.open()

    await live.publish(
        swap("replace", '<p id="a">A</p><p id="c">c</p>', "#a"),
        swap("before", '<p id="d">d</p>', "#a"),
        swap("after", '<p id="e">e</p>', "#a"),
        swap("append", "<b>1</b>", "#b"),
        swap("prepend", "<b>0</b>", "#b"),
        swap("remove", target="#c"),
        swap("prepend", '<p id="f">f</p>'),
        swap("append", '<p id="g">g</p>', "#block"),
        swap("append", '<p id="f">again</p><p id="h">h</p>'),
        swap("morph", '<p id="a">morphed</p>', "#a"),
    )
    await live.shows("again", "d", "morphed", "e", "0b1", "g", "h", of="#block > p")

    await live.publish(swap("inner", '<p id="i">i</p>'), swap("replace", "<p>all</p>"))
    await live.shows("all", of="#block > p")
    await live.publish(put(1))
    await live.shows("1")
    assert [name for name, _, _ in await live.told()] == ["swap"] * 12 + ["put"]


async def test_what_has_no_place_is_told_and_changes_nothing(live: LivePage) -> None:
    live.has(LIST.format("", row(1)) + '<p id="outside">outside</p>')
    await live.open()
    before = await live.run("return document.body.innerText")
    nonsense = [
        None,
        5,
        {"op": "drop"},
        {"op": "constructor", "key": "1"},
        {"op": "put", "key": 1, "html": "<li>"},
        {"op": "put", "key": "2", "html": "no element"},
        {"op": "remove"},
        {"op": "swap"},
        swap("explode", "", "ul"),
        swap("inner", "x", "#outside"),
        swap("inner", "x", "[["),
        swap("remove"),
        swap("after", "x", "#block"),
    ]

    await live.publish(*nonsense[:KEPT])
    await live.until(f"told.length === {KEPT}")
    await live.publish(*nonsense[KEPT:])
    await live.until(f"told.length === {len(nonsense)}")

    assert await live.told() == [["unknown", "block", each] for each in nonsense]
    assert await live.run("return document.body.innerText") == before


async def test_script_prevents_what_a_publication_does(live: LivePage) -> None:
    live.has(LIST.format("", row(1)))
    await live.open()
    await live.run(
        """
        document.addEventListener("realtime:before-put", (event) => {
          if (event.detail.key === "2") event.preventDefault();
        });
        document.addEventListener("realtime:put", ({ detail }) => {
          if (detail.data) document.querySelector("p").textContent = detail.data.text;
        });
        """
    )

    await live.publish(put(2), {"op": "put", "key": "1", "data": {"text": "by a script"}}, put(3))

    await live.shows("1", "3")
    await live.shows("by a script", of="p")
    assert live.requested == 1


FORM = '<li data-key="1"><p>{}</p><form><input name="note" value="{}"></form></li>'


@pytest.mark.parametrize("query", ["", "?with=idiomorph"], ids=["alone", "with Idiomorph"])
async def test_focus_caret_and_text_stay_in_a_row_that_changes(live: LivePage, query: str) -> None:
    if query:
        require_packages("idiomorph")
    live.has(LIST.format("", FORM.format("old", "")))
    await live.open(query)
    field = live.browser.find_element(By.NAME, "note")
    await asyncio.to_thread(field.send_keys, "typed", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    look = """
        const { tagName, value, selectionStart } = document.activeElement;
        return [tagName, value, selectionStart];
    """

    await live.publish({"op": "put", "key": "1", "html": FORM.format("new", "")})
    await live.shows("new", of="li p")
    assert await live.run(look) == ["INPUT", "typed", 3]

    live.has(LIST.format("", row(0) + FORM.format("loaded", "")))
    await live.publish({"op": "put", "key": "1"})
    await live.shows("loaded", of="li p")
    assert await live.run(look) == ["INPUT", "typed", 3]
    same = "return document.querySelector('input') === window.field"
    await live.run("window.field = document.querySelector('input')")
    await live.publish({"op": "put", "key": "1", "html": FORM.format("last", "")})
    await live.shows("last", of="li p")
    assert await live.run(same) is bool(query)


async def test_scrolled_list_stays_where_it_is_when_it_is_loaded(live: LivePage) -> None:
    rows = "".join(row(number) for number in range(200))
    live.has(LIST.format("", rows))
    await live.open()
    await live.run(
        """
        const sheet = new CSSStyleSheet();
        sheet.replaceSync("ul { height: 100px; overflow: auto }");
        document.adoptedStyleSheets.push(sheet);
        document.querySelector("ul").scrollTop = 500;
        """
    )
    live.has(LIST.format("", rows + row(200)))

    await live.publish({"op": "put", "key": "200"})

    await live.until("document.querySelectorAll('li').length === 201")
    assert await live.run("return document.querySelector('ul').scrollTop") == 500
