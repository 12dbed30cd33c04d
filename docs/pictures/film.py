"""Make the moving picture of the README: a client is cut off and gets what it missed.

The page is the demo page of the ready site. The pictures are one animated PNG, which browsers play.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from docs.pictures.make import Camera
from docs.pictures.png import Frame, animate
from tests.browser import browsing
from tests.ready_site import ReadySite
from tests.server import wait_until

HERE = Path(__file__).resolve().parent
FILE = HERE / "recovery.png"
WIDTH, HEIGHT = 1080, 730
"""CSS pixels."""
LONG, SHORT = 2.6, 1.4
"""Seconds that a picture stays."""
CHANNEL = "demo:lobby"
CUT, SEES = "#own", "#other"
"""The client that is cut off, and the one that stays."""

# a line of text over the page, as under a film
SUBTITLE = """
  let line = document.getElementById("subtitle");
  if (!line) {
    line = document.createElement("p");
    line.id = "subtitle";
    Object.assign(line.style, {
      position: "fixed", inset: "auto 0 0 0", margin: 0, padding: "14px 20px",
      font: "600 17px system-ui, sans-serif", color: "#fff", background: "#1f2937", zIndex: 9,
    });
    document.body.append(line);
  }
  line.textContent = arguments[0];
"""


def film(site: ReadySite, camera: Camera) -> list[Frame]:
    """Cut one client of the page off, publish, and let it come back. Return the pictures."""
    frames: list[Frame] = []

    def shoot(subtitle: str, seconds: float) -> None:
        camera.run(SUBTITLE, subtitle)
        frames.append(Frame(camera.picture(WIDTH, HEIGHT), seconds))

    def publish(text: str, *panes: str) -> None:
        site.publish(CHANNEL, {"text": text})
        for pane in panes:
            shown(pane, text)

    def shown(pane: str, text: str) -> None:
        script = "return document.querySelector(arguments[0]).textContent.includes(arguments[1])"
        wait_until(lambda: camera.run(script, f"{pane} .entries", text), 20, text)

    camera.open("/demo", width=WIDTH)
    camera.size(WIDTH, HEIGHT)
    camera.until(".status[data-state=connected]", 2)
    shoot("Two clients are connected", SHORT)
    publish("Table 4 has ordered", CUT, SEES)
    shoot("What your code publishes appears at once", SHORT)
    publish("Table 7 wants to pay", CUT, SEES)
    shoot("What your code publishes appears at once", LONG)
    camera.click(f"{CUT} .cut")
    camera.until(f"{CUT} .status:not([data-state=connected])")
    shoot("One connection is cut", LONG)
    publish("Table 4: one soup more", SEES)
    publish("Table 9 is free", SEES)
    shoot("Two messages are published meanwhile", LONG)
    camera.click(f"{CUT} .cut")
    shown(CUT, "Table 9 is free")
    camera.until(".status[data-state=connected]", 2)
    shoot("It comes back, and has what it missed, once and in order", 2 * LONG)
    return frames


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        site = ReadySite(directory / "data")
        try:
            with browsing(directory / "profile") as browser:
                camera = Camera(browser, site.address, scale=1)
                frames = film(site, camera)
                browser.get("about:blank")
                FILE.write_bytes(animate(browser, frames))
        finally:
            site.discard()
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")  # noqa: T201, a script tells what it made


if __name__ == "__main__":
    main()
