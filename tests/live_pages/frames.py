"""Frames of a real browser that show a live list, and what judges them.

The rules are those of the simulation's judge. A *view* is what a frame is given from its first
rendering, or from a `realtime:reset`, which tells it that something is missing, to the next one.

    next       within a view, each version of a row comes after the version before it, and a row
               that was removed does not come again
    shown      a frame shows the version that it was given last
    complete   when the writers rest and all processes run, a frame has what a fresh rendering has

The first two hold for durable publications: direct ones may be lost, and two processes that change
a row at once may publish in another order than they commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome

from tests.tcp_proxy import TcpProxy

SCRIPT_TIMEOUT = 120

OPEN = r"""
    const [addresses, watched, done] = arguments;
    const frame = (address, sandbox) => new Promise((resolve) => {
      const element = document.createElement("iframe");
      if (sandbox) element.setAttribute("sandbox", "allow-same-origin");
      element.src = address;
      element.onload = resolve;
      document.body.append(element);
    });
    const given = ({ op, swap, key, html, target }) => {
      const removed = op === "remove" || swap === "remove";
      const row = key ?? /data-key=["'](\d+)/.exec(removed ? target : html)[1];
      return [row, removed ? Infinity : Number(/>v(\d+) /.exec(html)[1])];
    };
    const shown = (inner, row) => {
      const title = inner.querySelector(`[data-key="${row}"] span`)?.textContent;
      return title === undefined ? Infinity : Number(/^v(\d+) /.exec(title)[1]);
    };
    window.resets = window.puts = 0;
    window.mistakes = [];
    const watch = (number, inner) => {
      let versions = new Map();
      inner.addEventListener("realtime:reset", () => {
        window.resets++;
        versions = new Map();
      });
      for (const name of ["swap", "put", "remove"]) {
        inner.addEventListener(`realtime:${name}`, ({ detail }) => {
          window.puts++;
          const [row, version] = given(detail);
          const before = versions.get(row);
          const now = shown(inner, row);
          versions.set(row, version);
          const isNext = version === Infinity
            ? before !== Infinity
            : before === undefined || version === before + 1;
          if (!watched || (isNext && now === version)) return;
          const what = `row ${row}: given ${version} after ${before}, shows ${now}`;
          window.mistakes.push([number, inner.location.search, what]);
        });
      }
      inner.addEventListener("realtime:error", ({ detail }) => {
        inner.defaultView.lastError = detail.message ?? detail.reason;
      });
    };
    (async () => {
      await frame("/", true);
      for (const [number, address] of addresses.entries()) {
        await frame(address, false);
        watch(number, window.frames[number + 1].document);
      }
    })().then(() => done(null), (error) => done(String(error)));
"""
"""Make one frame without JavaScript, and others. `watched`: judge the first two rules, too."""
COMPARE = """
    const done = arguments[0];
    const rows = (from) => [...from.querySelectorAll("main li")].map((each) => each.outerHTML);
    (async () => {
      const text = await (await fetch("/", { cache: "no-store" })).text();
      const fresh = rows(new DOMParser().parseFromString(text, "text/html"));
      if (!fresh.length) throw new Error(text.slice(0, 200));
      const differs = Array.from(window.frames).map((each) => {
        const shown = rows(each.document);
        return shown.length !== fresh.length || shown.some((html, index) => html !== fresh[index]);
      });
      const [plain, ...live] = differs;
      const wrong = Array.from(window.frames).slice(1).filter((_, index) => live[index]);
      const details = wrong.map(({ document: { querySelector: find }, document, lastError }) => [
        document.location.search,
        find.call(document, "[data-realtime-channel]").dataset.at,
        rows(document).length,
        lastError ?? "",
      ]);
      return { plain, details, rows: fresh.length, resets, puts, mistakes };
    })().then(done, (error) => done({ error: String(error) }));
"""

LOAD = """
    for (const { document } of Array.from(window.frames).slice(1)) {
      document.querySelector("realtime-live").load();
    }
"""


@dataclass
class Look:
    """What a look at all frames found."""

    rows: int = 0
    swaps: int = 0
    """What publications did in all frames."""
    resets: int = 0
    """How often a frame loaded its list again."""
    wrong: list[Any] = field(default_factory=list)
    """Frames whose list is not that of a fresh rendering: position, rows, the last error."""
    mistakes: list[Any] = field(default_factory=list)
    """Frame, its address, and what broke the first two rules."""
    plain_differs: bool = False
    """Whether the frames without JavaScript show another list, as they must."""
    errors: list[str] = field(default_factory=list)
    """Why windows could not be compared."""


class Frames:
    """Windows of the browser, one for each server, and the viewers in them."""

    def __init__(self, browser: Chrome, addresses: Sequence[str]) -> None:
        self._browser = browser
        self._addresses = addresses
        self._windows: list[str] = []
        browser.set_script_timeout(SCRIPT_TIMEOUT)

    async def open(self, viewers: int, pages: Sequence[str], *, watched: bool) -> None:
        """Share the viewers out to the servers, and the pages to the viewers of each."""
        await asyncio.to_thread(self._open, viewers, pages, watched)

    def _open(self, viewers: int, pages: Sequence[str], watched: bool) -> None:
        for number, address in enumerate(self._addresses):
            self._browser.switch_to.new_window("window")
            self._windows.append(self._browser.current_window_handle)
            self._browser.get(f"{address}/static/todo/todo.css")
            count = (viewers + number) // len(self._addresses)
            shared = [pages[each % len(pages)] for each in range(count)]
            assert self._browser.execute_async_script(OPEN, shared, watched) is None

    async def collect_garbage(self) -> None:
        """Let the browser free what no page needs; by itself it waits until gigabytes are full."""
        await asyncio.to_thread(self._collect_garbage)

    def _collect_garbage(self) -> None:
        for window in self._windows:
            self._browser.switch_to.window(window)
            self._browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})

    async def look(self) -> Look:
        """Compare the lists of each window with a fresh rendering."""
        return await asyncio.to_thread(self._look)

    async def load(self) -> None:
        """Let all viewers load their list, as a page may at any time."""
        await asyncio.to_thread(self._load)

    def _load(self) -> None:
        for window in self._windows:
            self._browser.switch_to.window(window)
            self._browser.execute_script(LOAD)

    def _look(self) -> Look:
        look = Look(plain_differs=True)
        for window in self._windows:
            self._browser.switch_to.window(window)
            try:
                found = self._browser.execute_async_script(COMPARE)
            except TimeoutException as error:
                found = {"error": str(error)}
            if "error" in found:
                look.errors.append(found["error"])
                continue
            look.rows = found["rows"]
            look.swaps += found["puts"]
            look.resets += found["resets"]
            look.wrong += found["details"]
            look.mistakes += found["mistakes"]
            look.plain_differs &= found["plain"]
        return look


@asynccontextmanager
async def opened(
    browser: Chrome, ports: Sequence[int], viewers: int, pages: Sequence[str], *, watched: bool
) -> AsyncIterator[tuple[Frames, list[TcpProxy]]]:
    """Viewers who have loaded the page, each by way of a proxy to one of the servers."""
    async with AsyncExitStack() as stack:
        proxies = [
            await stack.enter_async_context(TcpProxy(f"http://127.0.0.1:{port}")) for port in ports
        ]
        frames = Frames(browser, [proxy.url for proxy in proxies])
        await frames.open(viewers, pages, watched=watched)
        yield frames, proxies
