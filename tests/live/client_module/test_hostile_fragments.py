"""HTML that tries to run something, in fragments of live.js: nothing of it runs.

There are two walls. The module takes out what could run, and a content security policy refuses what
is left. Each of them is tried alone, and without both most of these strings run something.
"""

from __future__ import annotations

import pytest

from tests.live.client_module.live_page import LivePage

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

FRAGMENTS = [
    text.replace("{number}", str(number)).replace("{}", f"ran.push({number})")
    for number, text in enumerate((*RUNS, *MAY_RUN))
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
    await live.publish(*puts, *swaps)
    await live.until(f"told.length >= {len(puts) + len(swaps)}")


@pytest.mark.parametrize("policy", ["", "?policy=types", "?with=idiomorph"])
async def test_fragments_run_nothing(live: LivePage, policy: str) -> None:
    """Not even without a policy."""
    live.has(BLOCK)
    await live.open(policy)

    await published(live)

    assert await live.run(TRY) == []


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

    await live.run(RAW, FRAGMENTS)

    assert await live.run(TRY) == []


async def test_the_same_fragments_run_without_both(live: LivePage) -> None:
    live.has(BLOCK)
    await live.open()

    await live.run(RAW, FRAGMENTS)

    assert set(range(len(RUNS))) <= set(await live.run(TRY))
