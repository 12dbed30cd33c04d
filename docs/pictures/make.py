"""Make the pictures of the panel: `make pictures`. Takes about two minutes.

Starts what `scene` describes, signs in, and photographs the pages in Chromium. Needs what the
browser tests need: `chromium`, `chromedriver`, a `redis-server`.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from docs.pictures.png import reduce
from docs.pictures.scene import GOODS, OPERATOR, Scene, play
from tests.browser import browsing
from tests.panel.paths import page_path
from tests.server import wait_until

HERE = Path(__file__).resolve().parent
WIDE = 1100
PHONE = 390
SCALE = 2
MARGIN = 12
"""CSS pixels."""
SAMPLES = 3
"""Samples that the charts of the overview have at least; there is one every ten seconds."""


class Camera:
    """A browser in which the operator is signed in."""

    def __init__(self, browser: Chrome, address: str, scale: int = SCALE) -> None:
        self.browser = browser
        self.address = address
        self._scale = scale
        self._taken: dict[str, str] = {}
        self._command("Emulation.setScrollbarsHidden", hidden=True)

    def open(self, path: str, *, width: int = WIDE) -> None:
        """Load a page."""
        self.size(width, 800)
        self.browser.get(self.address + path)

    def until(self, selector: str, count: int = 1, timeout: float = 20) -> None:
        """Wait until there are so many elements."""
        wait_until(lambda: len(self.all(selector)) >= count, timeout, selector)

    def all(self, selector: str) -> list[Any]:
        return list(self.browser.find_elements(By.CSS_SELECTOR, selector))

    def run(self, script: str, *arguments: object) -> Any:
        return self.browser.execute_script(script, *arguments)

    def type(self, **values: str) -> None:
        """Put texts into fields, as if they were pasted."""
        script = """
            const field = document.querySelector(`#content [name=${arguments[0]}]`);
            field.value = arguments[1];
            for (const kind of ["input", "change"]) {
              field.dispatchEvent(new Event(kind, { bubbles: true }));
            }
        """
        for name, value in values.items():
            self.run(script, name, value)

    def click(self, selector: str) -> None:
        self.browser.find_element(By.CSS_SELECTOR, selector).click()

    def take(self, name: str, *, below: str = "", height: int = 0, dark: bool = False) -> None:
        """Take a picture of the page from its top.

        Args:
            below: selector of the last element that is in it.
            height: of the picture in CSS pixels, where no element is named.
        """
        width = self.run("return innerWidth")
        if below:
            height = MARGIN + self.run(
                "return Math.ceil(document.querySelector(arguments[0])"
                ".getBoundingClientRect().bottom + scrollY)",
                below,
            )
        self.size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", features=[scheme])
        self.run("document.activeElement.blur(); scrollTo(0, 0)")
        self._wait_for_colours()
        self._taken[name] = self.picture(width, height)
        self._command("Emulation.setEmulatedMedia", features=[scheme | {"value": "light"}])
        self._wait_for_colours()

    def picture(self, width: int, height: int) -> str:
        """Return the top of the page as PNG in base64."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self._command("Page.captureScreenshot", format="png", clip=clip)
        return str(taken["data"])

    def take_both(self, name: str, **place: Any) -> None:
        """Take it in light and in dark."""
        self.take(name, **place)
        self.take(f"{name}-dark", dark=True, **place)

    def develop(self) -> None:
        """Write the files."""
        self.browser.get("about:blank")
        for name, picture in self._taken.items():
            path = HERE / f"{name}.png"
            path.write_bytes(reduce(self.browser, picture))
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")  # noqa: T201, a script tells what it made

    def _wait_for_colours(self) -> None:
        """They fade into those of the other theme, a frame after it was chosen."""
        frame = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        self.browser.execute_async_script(frame)
        wait_until(
            lambda: self.run("return document.getAnimations().length === 0"), 10, "still colours"
        )

    def size(self, width: int, height: int) -> None:
        """Make the page so large, in CSS pixels."""
        self._command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=self._scale,
            mobile=width == PHONE,
        )

    def _command(self, name: str, **parameters: object) -> Any:
        return self.browser.execute_cdp_cmd(name, parameters)


def sign_in(camera: Camera, scene: Scene) -> None:
    """The sign-in page of the panel by itself, then the admin's own."""
    camera.open("/")
    camera.take("sign-in", height=420)
    camera.open("/admin/login/")
    camera.type(username=OPERATOR, password=scene.password)
    camera.click("[type=submit]")
    camera.until("#logout-form")
    camera.run("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")


def channels(camera: Camera, scene: Scene) -> None:
    camera.open(page_path("channels", q="chat:*"))
    camera.take("channels", below="#channels")


def channel(camera: Camera, scene: Scene) -> None:
    """With a few lines in the tail, and a user who joined."""
    camera.open(page_path("channel", channel="chat:lobby"))
    camera.until("#tail-list > [data-kind=publish]", 4)
    camera.until("#tail-list > [data-kind=join], #tail-list > [data-kind=leave]")
    camera.take_both("channel", below="#channel-tail")
    camera.open(page_path("channel", channel="chat:lobby"), width=PHONE)
    camera.until("#tail-state[data-state=live]")
    camera.take("phone", below="#channel-summary")


def user(camera: Camera, scene: Scene) -> None:
    camera.open(page_path("user", user="emil"))
    camera.take("user", below="#user-channels")


def why(camera: Camera, scene: Scene) -> None:
    """An option forbids it."""
    place = {"user": "emil", "channel": "orders:20411", "action": "publish"}
    camera.open(page_path("why", **place))
    camera.take("why", below="#why-checks")


def publish(camera: Camera, scene: Scene) -> None:
    """One that is sent, one that is checked, one that is asked about."""
    place = page_path("publication")
    camera.open(place)
    camera.until(".panel-editor.is-ready")
    camera.type(channel="news", data='{"title": "Free delivery until Sunday"}')
    camera.run("document.querySelector('#publish-form .default').click()")
    camera.until(".messagelist .success")
    camera.open(place)
    camera.until(".panel-editor.is-ready")
    data = '{\n  "title": "We are back",\n  "text": "Orders are sent again.",\n  "level": 1\n}'
    camera.type(channel="news\nchat:lobby\norders:20411", data=data)
    camera.until("#reach tbody tr", 3)
    camera.take("publish", below="#recent")
    camera.type(channel="\n".join(f"stock:{name}" for name in (*GOODS, "rug-3", "rug-4", "lamp-8")))
    camera.until("#reach tbody tr", 11)
    camera.run("document.querySelector('#publish-form .default').click()")
    camera.until("dialog[open]")
    camera.take("publish-confirm", height=800)


def namespaces(camera: Camera, scene: Scene) -> None:
    camera.open(page_path("namespaces", set=1))
    camera.take("namespaces", below="#channel-options")


def console(camera: Camera, scene: Scene) -> None:
    camera.open(page_path("console", method="presence_stats"))
    camera.type(params='{"channel": "chat:lobby"}')
    camera.run("document.querySelector('#console-form .default').click()")
    camera.until("#response")
    camera.take("console", below="#answer")


def log(camera: Camera, scene: Scene) -> None:
    """With what `publish` has sent."""
    camera.open(page_path("log"))
    camera.take("log", below="#log")


def overview(camera: Camera, scene: Scene) -> None:
    """When its charts have something to show; then with a node that is gone."""
    camera.open(page_path("overview"))

    def samples() -> int:
        script = "return document.querySelector('.panel-plot path')?.getAttribute('d') ?? ''"
        return len(re.findall("[ML]", camera.run(script)))

    wait_until(lambda: samples() >= SAMPLES, 60, "the charts")
    camera.take_both("overview", below="#nodes")
    scene.nodes[2].kill()
    camera.until("#nodes .panel-gone", timeout=30)
    camera.until("#overview-hour > .panel-note bdi", timeout=30)
    camera.take("overview-silent", below="#nodes")


SHOTS: tuple[Callable[[Camera, Scene], None], ...] = (
    sign_in,
    channels,
    channel,
    user,
    why,
    publish,
    log,
    namespaces,
    console,
    overview,
)


def photograph(scene: Scene, directory: Path) -> None:
    """Take all pictures."""
    with browsing(directory / "profile") as browser:
        camera = Camera(browser, scene.nodes[0].address)
        for shot in SHOTS:
            shot(camera, scene)
        camera.develop()


async def main() -> None:
    """Play the scene, and photograph it meanwhile."""
    for name in list(os.environ):
        if name.startswith(("DJANGO_", "SERVICE_")):
            del os.environ[name]  # they would configure the scene
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with play(directory) as scene:
            await asyncio.to_thread(photograph, scene, directory)


if __name__ == "__main__":
    asyncio.run(main())
