"""axe-core finds nothing on any page of the panel, in both themes, in the states that pages have.

One walk: each state of the service is made once, and the pages that show it are opened one after
the other. What belongs to Django's admin, around the pages, is left out.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from realtime.config.reader import load
from tests.browser import wait_for
from tests.js_builds import DIRECTORY, require_packages
from tests.live.panel_servers import PanelServer, make_site
from tests.live.panel_site import PASSWORD, Guests, sign_in
from tests.live.panel_staff import post
from tests.live.publish_page import send
from tests.panel.paths import page_path
from tests.panel.standalone_parts import ADMIN_SECRET
from tests.panel.standalone_parts import PASSWORD as SHARED_PASSWORD
from tests.redis_server import RedisServer
from tests.server import SECRET, wait_until

USER = "ada"
CHANNEL = "demo:a"
NAMESPACES = [
    {"name": "demo", "anonymous": True, "presence": True, "history_size": 9, "history_lifetime": 60}
]
ENVIRONMENT = {
    "SERVICE_NAMESPACES": json.dumps(NAMESPACES),
    "DJANGO_DEMO": "true",
    "SERVICE_ADMIN": "true",
    "SERVICE_ADMIN_PASSWORD": SHARED_PASSWORD,
    "SERVICE_ADMIN_SECRET": ADMIN_SECRET,
    "SERVICE_REDIS_CONNECT_TIMEOUT": "3",
    "SERVICE_REDIS_READ_TIMEOUT": "3",
}

DJANGO = ["#header", ".breadcrumbs", "#nav-sidebar", "#toggle-nav-sidebar", ".skip-to-content-link"]
"""Parts of a page that are Django's. The standalone home has none of them."""

LIGHT_AND_DARK = """
const [exclude, rules, done] = arguments;
// colours that change with the theme do so in steps
for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish();
const options = { preload: false, resultTypes: ["violations"] };
if (rules) options.runOnly = { type: "rule", values: rules };
axe.run({ exclude: exclude.map((part) => [part]).filter(([part]) => document.querySelector(part)) },
    options).then(
  ({ violations }) => done(violations.map(({ id, nodes }) =>
    `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).slice(0, 3).join(" | ")}`)),
  (error) => done([`axe: ${error}`]),
);
"""
OF_COLOUR = ["color-contrast", "link-in-text-block"]
"""Rules of which the theme decides."""


class Walk:
    """A browser that looks at pages, and notes what axe says."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser = browser
        self.address = address
        self.found: list[str] = []
        self._state = ""
        source = (DIRECTORY / "node_modules" / "axe-core" / "axe.min.js").read_text()
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})

    def begin(self, state: str) -> None:
        """Name the state of the service that the next pages show."""
        self._state = state

    def open(self, path: str, until: str = "main, #content") -> None:
        """Open a page, and look at it when it shows something."""
        self.browser.get(self.address + path)
        self.look(path, until)

    def admin(self, name: str, until: str = "#content", **query: object) -> None:
        """Look at a page in Django's admin."""
        self.open(page_path(name, **query), until)

    def until(self, selector: str) -> None:
        """Wait until the page shows something."""
        browser = self.browser
        wait_for(browser, lambda: browser.find_elements(By.CSS_SELECTOR, selector), selector)

    def look(self, name: str, until: str) -> None:
        """Look at what is shown, in both themes."""
        self.until(until)
        for theme, rules in (("light", None), ("dark", OF_COLOUR)):
            features = [{"name": "prefers-color-scheme", "value": theme}]
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            found = self.browser.execute_async_script(LIGHT_AND_DARK, DJANGO, rules)
            self.found += [f"{self._state}: {name}, {theme}: {each}" for each in found]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis").start()
    yield server
    server.kill()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    directory = tmp_path / "site"
    directory.mkdir()
    return make_site(directory)


@pytest.fixture
def servers(tmp_path: Path, redis: RedisServer, site: Path) -> Iterator[list[PanelServer]]:
    """A node that is looked at, and one that will be frozen."""
    servers = [
        PanelServer(site, tmp_path / name, redis_url=redis.url, **ENVIRONMENT)
        for name in ("one", "two")
    ]
    yield servers
    for each in servers:
        each.discard()


@pytest.fixture
def walk(clean_browser: Chrome, servers: list[PanelServer]) -> Walk:
    require_packages("axe-core")
    return Walk(clean_browser, servers[0].address)


@pytest.mark.timeout(300)  # every page in every state and theme
async def test_axe_finds_nothing_on_any_page(
    walk: Walk, servers: list[PanelServer], redis: RedisServer
) -> None:
    panel, frozen = servers
    operator = sign_in(panel.address, PASSWORD)
    for_visitors(walk)
    # a form would hash the password once more, which takes long on purpose
    walk.browser.add_cookie({"name": "sessionid", "value": operator.cookies["sessionid"]})
    nothing_there(walk)
    async with AsyncExitStack() as stack:
        stack.callback(operator.close)
        guests = Guests(panel.socket, load({"token_hmac_secret_key": SECRET}), stack)
        client = await guests.open(USER, CHANNEL, "news", info={"name": "Ada"})
        await client.error("subscribe", {"channel": "$private"})
        acts(operator)
        os.kill(frozen.server.pid, signal.SIGSTOP)
        with_data(walk)
        wait_until(lambda: "silent for" in operator.get(page_path("overview")).text, what="silence")
        node_is_frozen(walk, panel)
        redis.kill()
        redis_is_away(walk)

    assert not walk.found, "\n".join(walk.found)


def acts(operator: httpx.Client) -> None:
    """What the log has, and a user who is blocked."""
    send(operator, f"{CHANNEL} news b c d e f", '{"text": "hello", "numbers": [1, 2, 3]}')
    send(operator, CHANNEL, f'{{"text": "{"long words " * 100}"}}')
    post(operator, page_path("user") + "block/?user=mallory", minutes="5")


def for_visitors(walk: Walk) -> None:
    walk.begin("for visitors")
    walk.open("/demo", "[role=log]")
    walk.open("/sign-in/", "[name=password]")


def nothing_there(walk: Walk) -> None:
    """The pages of a service without clients, in both homes."""
    walk.begin("no data")
    for name in ("overview", "channels", "user", "log", "pending", "publication"):
        walk.admin(name)
    walk.admin("channel", channel=CHANNEL)
    walk.admin("user", user="nobody", search="1")
    walk.begin("no data, standalone")
    walk.open("/", "#overview")
    walk.open(f"/channel/?channel={CHANNEL}", "#channel-tail")


def with_data(walk: Walk) -> None:
    """The pages that ask no other node: the frozen one does not yet count as silent."""
    walk.begin("data")
    walk.admin("log", "#log")
    walk.admin("log", "#log-filter", target="nothing")
    walk.admin("namespaces", "#channel-options")
    walk.admin("console", "#console-form")
    walk.browser.find_element(By.CSS_SELECTOR, "#console-form [type=submit]").click()
    walk.look("a result in the console", "#answer pre")
    walk.admin("channel", "#channel-error", channel="nope:a")
    walk.admin("user", "#anonymous", user="")
    walk.admin("publication", "#recent", channel=CHANNEL)
    walk.admin("frames", "#frames, form", user=USER)


def node_is_frozen(walk: Walk, panel: PanelServer) -> None:
    """The pages that ask all nodes, one of which is silent."""
    walk.begin("a frozen node")
    walk.admin("overview", "#overview-nodes tr:nth-child(2)")
    walk.browser.find_element(By.ID, "palette-opener").click()
    walk.look("the palette", "#palette[open] a")
    # one script: the page replaces its rows every few seconds
    link = walk.browser.execute_script("return document.querySelector('#overview-nodes th a').href")
    walk.open(str(link).removeprefix(walk.address), "#node-live")
    walk.admin("events", "#events")
    walk.admin("channels", "#content table")
    walk.admin("channels", sort="publications")
    walk.admin("channels", q="nothing")
    walk.admin("channel", "#channel-history .panel-entry", channel=CHANNEL)
    walk.until("#tail-state[data-state=live]")
    panel.publish(CHANNEL, {"text": "hello"})
    walk.look("an entry in the tail", "#tail-list .panel-entry")
    walk.admin("user", "#users-blocked")
    walk.admin("user", "#content table", user=USER)
    walk.admin("user", user=USER[:1], search="1")
    walk.admin("why", "#why-user")
    walk.admin("why", "#why-checks", user=USER, channel=CHANNEL)
    for question in ("disconnect", "block", "unsubscribe"):
        walk.open(f"{page_path('user')}{question}/?user={USER}&all=1", "#do")


def redis_is_away(walk: Walk) -> None:
    walk.begin("Redis away")
    for name in ("overview", "events", "channels", "user", "publication"):
        walk.admin(name)
    walk.admin("channel", channel=CHANNEL)
    walk.admin("user", user=USER)
    walk.admin("why", "#why-checks", user=USER, channel=CHANNEL)
