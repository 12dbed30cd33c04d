"""Viewers of a live list, cut off and served by processes that are killed.

    python -m tests.live_pages.viewers [--viewers 100] [--rows 1000] [--rate 50] [--seconds 120] \
        [--feed]

Two processes serve a copy of the to-do example with one Redis; a third one changes its list. With
--feed the list is one of a live model, and two processes change the same rows at once. The
viewers are frames of a real browser, each with a connection and a document of its own. Their
connections are cut again and again, for longer than the history reaches, too, and a process is
killed and started anew. In the end every list must be equal to a fresh rendering. One more frame
has no JavaScript: its list must differ, or nothing was tried. Prints a report.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

from tests.browser import browsing
from tests.live.examples.sites import Example, environment
from tests.ports import free_port
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ListeningProcess
from tests.tcp_proxy import TcpProxy

FEED = """
from realtime import live
from todo.models import Item


@live.model(Item)
class LiveItem(live.Feed):
    channels = ("todo:all",)
    fragment = "todo/item.html"

    def context(self, row):
        return {"item": row}

    @staticmethod
    def may_view(request):
        return True
"""
WRITER = Path(__file__).with_name("writer.py")
SCRIPT_TIMEOUT = 120
SETTLE_TIMEOUT = 240.0
"""Seconds in which all lists must be right after the last change."""

OPEN = """
    const [count, done] = arguments;
    const frame = (sandbox) => new Promise((resolve) => {
      const element = document.createElement("iframe");
      if (sandbox) element.setAttribute("sandbox", "allow-same-origin");
      element.src = "/";
      element.onload = resolve;
      document.body.append(element);
    });
    window.resets = 0;
    window.puts = 0;
    (async () => {
      await frame(true);
      for (let number = 0; number < count; number++) {
        await frame(false);
        const { document: inner } = window.frames[number + 1];
        inner.addEventListener("realtime:reset", () => window.resets++);
        for (const name of ["swap", "put", "remove"]) {
          inner.addEventListener(`realtime:${name}`, () => window.puts++);
        }
        inner.addEventListener("realtime:error", ({ detail }) => {
          inner.defaultView.lastError = detail.message ?? detail.reason;
        });
      }
    })().then(() => done(null), (error) => done(String(error)));
"""
"""Make one frame without JavaScript, and others."""
COMPARE = """
    const done = arguments[0];
    const rows = (from) => [...from.querySelectorAll("main li")].map((each) => each.outerHTML);
    (async () => {
      const text = await (await fetch("/", { cache: "no-store" })).text();
      const fresh = rows(new DOMParser().parseFromString(text, "text/html"));
      const differs = Array.from(window.frames).map((each) => {
        const shown = rows(each.document);
        return shown.length !== fresh.length || shown.some((html, index) => html !== fresh[index]);
      });
      const [plain, ...live] = differs;
      const wrong = Array.from(window.frames).slice(1).filter((_, index) => live[index]);
      const details = wrong.map(({ document: { querySelector: find }, document, lastError }) => [
        find.call(document, "[data-realtime-channel]").dataset.at,
        rows(document).length,
        lastError ?? "",
      ]);
      return { plain, details, rows: fresh.length, resets, puts };
    })().then(done, (error) => done({ error: String(error) }));
"""


@dataclass
class Report:
    """What came of a run."""

    viewers: int
    rows: int = 0
    swaps: int = 0
    """What publications did in all frames."""
    resets: int = 0
    """How often a frame loaded its list again."""
    cuts: int = 0
    kills: int = 0
    wrong: list[Any] = field(default_factory=list)
    """Frames whose list is not that of a fresh rendering: position, rows, the last error."""
    plain_differs: bool = False
    """Whether the frames without JavaScript show another list, as they must."""
    seconds: float = field(default=0.0)
    """From the last change until all lists were right."""


class Site:
    """A copy of the example, and the processes that serve it."""

    def __init__(
        self, directory: Path, redis: RedisServer, *, rows: int, kept: int, feed: bool
    ) -> None:
        """`feed`: the list is one of a live model."""
        self.example = Example("todo", directory)
        self._modes = ("rows", "beside") if feed else ("",)
        if feed:
            (self.example.directory / "todo" / "realtime.py").write_text(FEED)
        self.example.change("settings.py", '    "csp.content_security_policy",\n', "")  # for frames
        self.example.change("settings.py", '"history_size": 500', f'"history_size": {kept}')
        self.example.change(
            "settings.py",
            '    "client_anonymous": True,',
            f'    "redis_url": "{redis.url}",\n    "redis_prefix": "{directory.name}",\n'
            # frames of one browser share six connections: streams of a fallback would take them all
            '    "sockjs_disable": True,\n'
            '    "client_anonymous": True,',
        )
        migrated = self.example.manage("migrate")
        assert migrated.returncode == 0, migrated.stderr
        self.ports = [free_port(), free_port()]
        self._processes = [self._start(port) for port in self.ports]
        self._write(rows, 10_000, 0, "fill")

    def _start(self, port: int) -> ListeningProcess:
        return ListeningProcess(
            ["manage.py", "runserver", "--noreload", str(port)],
            rf"development server at http://127\.0\.0\.1:({port})",
            environment(),
            cwd=self.example.directory,
        )

    def kill(self, number: int) -> None:
        """Kill a process, and start another one in its place."""
        self._processes[number].kill()
        self._processes[number].discard()
        self._processes[number] = self._start(self.ports[number])

    def write(self, changes: int, rate: float, seed: int) -> None:
        """Change the list so often, in one process, or in two at once."""
        number = len(self._modes)
        write = partial(self._write, changes // number, rate / number, seed)
        with ThreadPoolExecutor() as pool:
            list(pool.map(write, self._modes))

    def _write(self, changes: int, rate: float, seed: int, mode: str) -> None:
        arguments = [
            str(WRITER),
            str(changes),
            str(rate),
            f"{seed}{len(mode)}",
            *filter(None, [mode]),
        ]
        limit = 60 + 3 * changes / rate
        done = run_python(arguments, self.example.directory, environment(), timeout=limit)
        assert done.returncode == 0, done.stderr

    def stop(self) -> None:
        for process in self._processes:
            process.discard()


class Frames:
    """Windows of the browser, one for each server, and the viewers in them."""

    def __init__(self, browser: Chrome, addresses: list[str]) -> None:
        self._browser = browser
        self._addresses = addresses
        self._windows: list[str] = []
        browser.set_script_timeout(SCRIPT_TIMEOUT)

    async def open(self, viewers: int) -> None:
        """Share the viewers out to the servers."""
        await asyncio.to_thread(self._open, viewers)

    def _open(self, viewers: int) -> None:
        for number, address in enumerate(self._addresses):
            self._browser.switch_to.new_window("window")
            self._windows.append(self._browser.current_window_handle)
            self._browser.get(f"{address}/static/todo/todo.css")
            count = (viewers + number) // len(self._addresses)
            assert self._browser.execute_async_script(OPEN, count) is None

    async def compare(self) -> list[dict[str, Any]]:
        """Compare the lists of each window with a fresh rendering."""
        return await asyncio.to_thread(self._compare)

    def _compare(self) -> list[dict[str, Any]]:
        found = []
        for window in self._windows:
            self._browser.switch_to.window(window)
            found.append(self._browser.execute_async_script(COMPARE))
        return found


@asynccontextmanager
async def opened(
    site: Site, browser: Chrome, viewers: int
) -> AsyncIterator[tuple[Frames, list[TcpProxy]]]:
    """Viewers who have loaded the page, each by way of a proxy to one of the servers."""
    async with AsyncExitStack() as stack:
        proxies = [
            await stack.enter_async_context(TcpProxy(f"http://127.0.0.1:{port}"))
            for port in site.ports
        ]
        frames = Frames(browser, [proxy.url for proxy in proxies])
        await frames.open(viewers)
        yield frames, proxies


async def settled(frames: Frames, report: Report) -> Report:
    """Wait until all lists are right, at most for `SETTLE_TIMEOUT`."""
    began = time.monotonic()
    while True:
        found = await frames.compare()
        assert not any("error" in each for each in found), found
        report.wrong = [frame for each in found for frame in each["details"]]
        if not report.wrong or time.monotonic() - began > SETTLE_TIMEOUT:
            break
        await asyncio.sleep(0.1)
    report.seconds = time.monotonic() - began
    report.rows = found[0]["rows"]
    report.swaps = sum(each["puts"] for each in found)
    report.resets = sum(each["resets"] for each in found)
    report.plain_differs = all(each["plain"] for each in found)
    return report


async def disturb(site: Site, proxies: list[TcpProxy], report: Report, until: float) -> None:
    """Cut connections, for a moment or for longer than the history reaches, and kill processes."""
    chance = random.Random(1)
    while time.monotonic() < until - 20:
        await asyncio.sleep(chance.uniform(2, 6))
        proxy = chance.choice(proxies)
        report.cuts += 1
        if chance.random() < 0.7:
            proxy.cut()
        else:
            proxy.refuse()
            await asyncio.sleep(chance.choice([1, 15]))
            proxy.allow()
        if chance.random() < 0.3:
            report.kills += 1
            await asyncio.to_thread(site.kill, chance.randrange(2))


async def run(directory: Path, options: argparse.Namespace) -> Report:
    """Have the viewers look at the list for so many seconds."""
    report = Report(options.viewers)
    redis = RedisServer(directory / "redis").start()
    site = await asyncio.to_thread(
        Site, directory, redis, rows=options.rows, kept=500, feed=options.feed
    )
    try:
        with browsing(directory / "profile") as browser:
            async with opened(site, browser, options.viewers) as (frames, proxies):
                print("all viewers have the page")  # noqa: T201, it takes minutes
                changes = options.seconds * options.rate
                until = time.monotonic() + options.seconds
                await asyncio.gather(
                    asyncio.to_thread(site.write, changes, options.rate, seed=2),
                    disturb(site, proxies, report, until),
                )
                return await settled(frames, report)
    finally:
        site.stop()
        redis.stop()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=50, help="changes per second")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--feed", action="store_true", help="a live model, and two writers")
    with tempfile.TemporaryDirectory() as directory:
        report = asyncio.run(run(Path(directory), parser.parse_args()))
    sys.stdout.write(json.dumps(report.__dict__, indent=2) + "\n")
    return 0 if not report.wrong and report.plain_differs and report.resets else 1


if __name__ == "__main__":
    sys.exit(main())
