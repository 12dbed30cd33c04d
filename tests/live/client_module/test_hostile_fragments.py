"""HTML that tries to run something, in fragments of live.js: nothing of it runs.

There are two walls. The module takes out what could run, and a content security policy refuses what
is left. Each of them is tried alone, and without both most of these strings run something.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.browser import console
from tests.live.client_module.live_page import LIST, LivePage, put, row
from tests.server import wait_until

RUNS = (
    "<script>{}</script>",
    "<SCRIPT type=module>{}</SCRIPT>",
    '<img src="x:" onerror="{}">',
    '<img/onerror="{}"/src="x:">',
    '"><img src="x:" oNeRRoR="{}">',
    '<svg><image href="x:" onerror="{}"/></svg>',
    '<svg><set onbegin="{}" attributeName="x" to="1"/></svg>',
    '<iframe srcdoc="<script>parent.{}</script>"></iframe>',
    '<iframe src="javascript:parent.{}"></iframe>',
    '<iframe src="&#9;java&#10;script:parent.{}"></iframe>',
    '<iframe onload="{}"></iframe>',
    '<video><source onerror="{}" src="x:"></video>',
    '<audio src="x:" onerror="{}"></audio>',
    '<style onload="{}"></style>',
    '<details open ontoggle="{}">x</details>',
    '<button onclick="{}">b</button>',
    '<p tabindex="0" onfocus="{}">p</p>',
    '<input autofocus onfocus="{}">',
    '<a href="javascript:{}">a</a>',
    '<a href=" &#1;jAva&#10;scr&#9;ipt:{}">a</a>',
    '<a href="&#106;&#97;vascript&colon;{}">a</a>',
    '<svg><a xlink:href="javascript:{}"><text y="20">a</text></a></svg>',
    '<svg><a href="javascript:{}"><text y="20">a</text></a></svg>',
    '<form action="javascript:{}"><button>b</button></form>',
    '<form><button formaction="javascript:{}">b</button></form>',
    '<form id="f{number}"></form><button form="f{number}" formaction="javascript:{}">b</button>',
    '<ul><li data-key="evil" onclick="{}">li</li></ul>',
    '<noscript></noscript><img title="</noscript>" src="x:" onerror="{}">',
)
"""Fragments that run something where nothing prevents it; `{}` is a call."""

MAY_RUN = (
    "<svg><script>{}</script></svg>",
    '<svg><script type="text/javascript" id=x>{}</script></svg>',
    '<svg onload="{}"></svg>',
    '<marquee onstart="{}">x</marquee>',
    "<math><mtext><table><mglyph><style><!--</style>"
    '<img title="--&gt;&lt;img src=1 onerror={}&gt;">',
    '<noscript><p title="</noscript><img src=x: onerror={}>">',
    "<template><script>{}</script></template>",
    '<template><img src="x:" onerror="{}"></template>',
    '<object data="javascript:{}"></object>',
    '<object data="data:text/html,<script>parent.{}</script>"></object>',
    '<embed src="javascript:{}">',
    '<iframe src="data:text/html,<script>parent.{}</script>"></iframe>',
    '<meta http-equiv="refresh" content="0;url=javascript:{}">',
    '<base href="javascript:/a/-{}//"><a href="#">a</a>',
    '<svg><a><animate attributeName="href" values="javascript:{}"/><text y="20">a</text></a></svg>',
    '<svg><use href="data:image/svg+xml,<svg onload={}>"/></svg>',
    '<math><a xlink:href="javascript:{}">a</a></math>',
    '<a href="vbscript:{}">a</a>',
    '<body onload="{}">',
    '<link rel="stylesheet" href="data:text/css," onload="{}">',
    '<li data-key="1"><xmp><img src="x:" onerror="{}"></xmp></li>',
)
"""Fragments of which that depends on the browser."""

HIDES = (
    '<form onanimationstart="{}"><input name=attributes></form>',
    '<form onclick="{}"><input name=attributes><input name=removeAttribute></form>',
    '<form attributeName=href onclick="{}"><input name=remove></form>',
    '<form id="h{number}" onclick="{}"></form><input form="h{number}" name=attributes>',
    '<form><template><form onclick="{}"><input name=attributes></form></template></form>',
    '<svg><foreignObject><form onclick="{}"><input name=attributes></form></foreignObject></svg>',
    '<math><mtext><form onclick="{}"><input id=attributes></form></mtext></math>',
    '<form name=createElement onclick="{}"></form>',
    '<img name=x id=activeElement onclick="{}"><iframe name=getElementById onload="{}"></iframe>',
    '<a id=htmx onclick="{}"></a><form id=Idiomorph onclick="{}"><input name=morph></form>',
    '<p id=realtime-config onclick="{}">x</p><p id=realtimeInspector onclick="{}"></p>',
)
"""Fragments in which an input hides a property of its form, or an element one of the page."""

FRAGMENTS = [
    text.replace("{number}", str(number)).replace("{}", f"ran.push({number})")
    for number, text in enumerate((*RUNS, *MAY_RUN, *HIDES))
]
BLOCK = (
    '<realtime-live id="block">[position]<ul data-rows></ul><div id="there"></div></realtime-live>'
)

RAW = """
    for (const html of args[0]) {
      const place = document.querySelector("#there");
      place.append(document.createRange().createContextualFragment(html));
    }
"""
"""What a careless script would do."""

EACH_NAME = """
    const { OPERATIONS, parse, show } = await import("/static/realtime/fragments.js");
    const live = document.querySelector("#block");
    const rows = live.querySelector("[data-rows]");
    const names = new Set();
    for (const { prototype } of [HTMLFormElement, Document])
      for (let each = prototype; each; each = Object.getPrototypeOf(each))
        for (const name of Object.getOwnPropertyNames(each)) names.add(name);
    const wrong = [];
    const run = (op, data) => OPERATIONS.get(op)(live, data);
    const [part, parts] = args;
    const inForm = (name) => {
      const form = (key, text, order) =>
        `<form id="form" data-key="${key}" data-order="${order}" tabindex="0"` +
        ` onclick="ran.push(1)">` +
        `<input name="${name}"><b onclick="ran.push(1)">${text}</b></form>`;
      const texts = () => [...rows.querySelectorAll("b")].map((each) => each.textContent).join(" ");
      const expect = (text) => texts() === text || wrong.push([name, texts(), text]);
      run("put", { key: "a", html: form("a", "one", 1) });
      run("put", { key: "b", html: `<li data-order="2"><b>two</b></li>` });
      const focus = (element) => HTMLElement.prototype.focus.call(element);
      const first = rows.firstElementChild;
      focus(first);
      expect("one two");
      run("put", { key: "a", html: form("a", "new", 3) });
      expect("two new");
      if (document.activeElement !== rows.lastElementChild) wrong.push([name, "focus"]);
      run("swap", { swap: "replace", target: "#form", html: form("a", "x", 3) });
      expect("two x");
      run("swap", { swap: "inner", target: "#form", html: `<input name="${name}"><b>y</b>` });
      expect("two y");
      run("swap", { swap: "append", target: "#form", html: "<div data-key=c><b>z</b></div>" });
      run("swap", { swap: "before", target: "#form", html: "<li><b>before</b></li>" });
      expect("two before y z");
      run("swap", { swap: "append", target: "[data-rows]", html: form("a", "w", 1) });
      expect("two before w");
      run("remove", { key: "a" });
      run("remove", { key: "b" });
      rows.replaceChildren();
      // a form around rows, and one around the element that has the focus
      const around = (text) =>
        `<form><input name="${name}"><div data-key="r"><input id="in"></div><b>${text}</b></form>`;
      rows.append(parse(around("first")));
      focus(rows.querySelector("#in"));
      show(rows, parse(around("second")), { inner: true });
      expect("second");
      if (document.activeElement !== rows.querySelector("#in")) wrong.push([name, "inner focus"]);
      run("put", { key: "r", html: "<div><b>row</b></div>" });
      expect("row second");
      rows.replaceChildren();
    };
    const tried = [...names].filter((_, index) => index % parts === part);
    for (const [index, name] of tried.entries()) try {
      if (name in HTMLFormElement.prototype) inForm(name);
      // and of the page; a frame takes long
      const html = [`<form name="${name}"></form>`, `<img name="x" id="${name}">`];
      if (index % 16 === 0) html.push(`<iframe name="${name}">`);
      for (const each of name in Document.prototype ? html : []) {
        run("swap", { swap: "append", target: "[data-rows]", html: each });
        if (Object.hasOwn(document, name)) wrong.push([name, "hides", each]);
        rows.replaceChildren();
      }
    } catch (error) {
      wrong.push([name, String(error)]);
      rows.replaceChildren();
    }
    if (names.size < 300) wrong.push(["few names", names.size]);
    for (const each of ran) wrong.push(["ran", each]);
    return wrong;
"""
"""Takes one of so many parts of the names; returns what went otherwise, with the name."""

SANITIZED = """
    const { parse } = await import("/static/realtime/fragments.js");
    const ours = "iframe, use, script, [shadowrootmode]";
    const text = (root) => {
      for (const each of root.content.querySelectorAll(ours)) each.remove();
      return root.innerHTML;
    };
    return args[0].flatMap((html) => {
      const [left, judged] = ["template", "template"].map((each) => document.createElement(each));
      left.content.append(parse(html));
      judged.setHTML(left.innerHTML, { sanitizer: new Sanitizer({}) });
      left.innerHTML = left.innerHTML;
      const [is, should] = [text(left), text(judged)];
      return is === should ? [] : [[html, is, should]];
    });
"""
"""Returns the fragments of which the browser's sanitizer takes out more than the module has."""

TRY = """
    addEventListener("submit", (event) => {
      const { target, submitter } = event;
      const url = submitter.getAttribute("formaction") ?? target.getAttribute("action") ?? "";
      if (!url.startsWith("javascript:")) event.preventDefault();
    });
    const turn = () => new Promise((resolve) => setTimeout(resolve));
    const later = (element, name) => new Promise((resolve) => {
      element.addEventListener(name, resolve);
      document.body.append(element);
    });
    const block = document.querySelector("#block");
    for (const element of [...block.querySelectorAll("*")]) {
      element.focus?.();
      element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
      await turn(); // the next URL would take the place of this one
      await turn();
    }
    // what has begun before has failed, or was loaded, by then
    for (let round = 0; round < 3; round++) {
      await later(Object.assign(new Image(), { src: "x:" }), "error");
      await later(document.createElement("iframe"), "load");
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }
    return [...new Set(ran)].sort((a, b) => a - b);
"""
"""Click and focus everything, and wait for what happens by itself. Returns the numbers of those
that ran."""


async def published(live: LivePage) -> None:
    """Publish all fragments, as rows and as swaps, and wait until the page shows them."""
    puts = [
        {"op": "put", "key": f"row {number}", "html": f"<li>{html}</li>"}
        for number, html in enumerate(FRAGMENTS)
    ]
    swaps = [
        {"op": "swap", "swap": "append", "target": "#there", "html": html} for html in FRAGMENTS
    ]
    # a page that got no position on a busy machine misses what comes before its subscription
    await asyncio.to_thread(wait_until, live.is_followed)
    await live.publish(*puts, *swaps)
    await live.until(f"told.length >= {len(puts) + len(swaps)}")


@pytest.mark.parametrize("policy", ["", "?policy=types", "?with=idiomorph"])
async def test_fragments_run_nothing(live: LivePage, policy: str) -> None:
    """Not even without a policy."""
    live.has(BLOCK)
    await live.open(policy)
    await published(live)
    assert await live.run(TRY) == []
    ours = "document.querySelectorAll('#realtime-config, #realtimeInspector')"
    assert await live.run(f"return [...{ours}].map((each) => each.localName)") == ["script"]


@pytest.mark.parametrize("part", range(2))
async def test_no_name_of_an_input_hides_its_form(live: LivePage, part: int) -> None:
    """Each property that a form has, as the name of an input, in a row and around rows."""
    live.has(BLOCK)
    await live.open()
    assert await live.run(EACH_NAME, part, 2) == []


async def test_browsers_own_sanitizer_finds_nothing_left(live: LivePage) -> None:
    """But for what it refuses anyhow: frames, and symbols of SVG."""
    live.has(BLOCK)
    await live.open()
    assert await live.run(SANITIZED, FRAGMENTS) == []


async def test_publication_that_cannot_be_shown_is_loaded(live: LivePage) -> None:
    """A library that fails stops neither the publications behind it nor the load."""
    live.has(LIST.format("", row(1)))
    await live.open()
    await live.run("globalThis.Idiomorph = { morph() { throw new Error('no morph') } }")
    live.has(LIST.format("", row(1, "one") + row(2)))
    console(live.browser)

    await live.publish(put(1, "lost"), put(2))

    await live.shows("1", "2")
    await live.shows("one", "2")
    assert ["error", "block", "no morph"] in await live.told()
    assert "cannot be shown" in str(console(live.browser))


async def test_block_that_is_loaded_runs_nothing(live: LivePage) -> None:
    live.has(BLOCK)
    await live.open("?policy=strict")
    everything = "".join(FRAGMENTS).replace("{%", "").replace("{{", "")
    live.has(BLOCK.replace('"there">', f'"there">{everything}'))
    await live.publish({"op": "put", "key": "1"})
    await live.until("told.some(([name]) => name === 'reset')")
    assert await live.run(TRY) == []


async def test_policy_refuses_what_a_careless_script_would_run(live: LivePage) -> None:
    live.has(BLOCK)
    await live.open("?policy=strict")
    await live.run(RAW, FRAGMENTS[: -len(HIDES)])
    assert await live.run(TRY) == []


async def test_the_same_fragments_run_without_both(live: LivePage) -> None:
    live.has(BLOCK)
    await live.open()
    await live.run(RAW, FRAGMENTS[: -len(HIDES)])
    assert set(range(len(RUNS))) <= set(await live.run(TRY))
