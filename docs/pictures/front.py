"""Make the first picture of the README: code on the left, two browsers on the right.

The browsers show the two clients of the demo page of the ready site, to which this script publishes
the messages that the code shows.
"""

from __future__ import annotations

import html
import tempfile
from pathlib import Path

from docs.pictures.make import PHONE, Camera
from docs.pictures.png import reduce
from tests.browser import browsing
from tests.ready_site import ReadySite
from tests.server import wait_until

FILE = Path(__file__).resolve().parent / "front.png"
WIDTH, HEIGHT = 1150, 420
"""CSS pixels."""
PANES = ("#own", "#other")
PANE_HEIGHT = 318
CHANNEL = "demo:lobby"
MESSAGES = ("Table 4 ordered", "Table 7 ordered", "Table 2 ordered")

CODE = """\
# views.py
from realtime import publish

def order(request, pk):
    table = Table.objects.get(pk=pk)
    table.add_order(request.POST)
    publish("demo:lobby", {
        "text": f"{table} ordered",
    })
    return redirect(table)
"""

SHOWN = """
    const [panes, text] = arguments;
    return panes.every((pane) => document.querySelector(pane).textContent.includes(text));
"""

PAGE = """
<!doctype html>
<style>
  body {{ margin: 0; width: {width}px; height: {height}px; display: flex; gap: 28px;
    align-items: center; justify-content: center; background: #eef2f1; }}
  pre {{ margin: 0; padding: 24px; width: 330px; border-radius: 10px; background: #1f2937;
    color: #f3f4f6; font: 15px/1.6 ui-monospace, "DejaVu Sans Mono", monospace; }}
  pre b {{ color: #5eead4; font-weight: 600; }}
  figure {{ margin: 0; width: 300px; border-radius: 10px; overflow: hidden; background: #fff;
    box-shadow: 0 4px 18px #0003; }}
  figure::before {{ content: "●  ●  ●"; display: block; padding: 6px 12px; font-size: 11px;
    background: #d9dfdd; color: #9aa5a1; }}
  figure div {{ height: {pane}px; overflow: hidden; }}
  img {{ width: 300px; }}
  i {{ font: 30px system-ui; color: #0f766e; }}
</style>
<pre>{code}</pre><i>→</i>{browsers}
"""


def panes(site: ReadySite, camera: Camera) -> list[str]:
    """Publish the messages, and return the picture of each client as PNG in base64."""
    camera.open("/demo", width=PHONE)
    camera.size(PHONE, 2000)
    camera.until(".status[data-state=connected]", len(PANES))
    for text in MESSAGES:
        site.publish(CHANNEL, {"text": text})
    wait_until(lambda: camera.run(SHOWN, PANES, MESSAGES[-1]), 20, "messages")
    return [
        camera.browser.find_element("css selector", pane).screenshot_as_base64 for pane in PANES
    ]


def compose(camera: Camera, pictures: list[str]) -> str:
    """Return the whole picture as PNG in base64."""
    code = html.escape(CODE).replace("publish(", "<b>publish</b>(")
    browsers = "".join(
        f'<figure><div><img src="data:image/png;base64,{each}"></div></figure>' for each in pictures
    )
    page = PAGE.format(width=WIDTH, height=HEIGHT, pane=PANE_HEIGHT, code=code, browsers=browsers)
    camera.browser.get("about:blank")
    camera.size(WIDTH, HEIGHT)
    camera.run("document.open(); document.write(arguments[0]); document.close()", page)
    wait_until(
        lambda: camera.run("return [...document.images].every((each) => each.complete)"),
        20,
        "pictures",
    )
    return camera.picture(WIDTH, HEIGHT)


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        site = ReadySite(directory / "data")
        try:
            with browsing(directory / "profile") as browser:
                camera = Camera(browser, site.address)
                picture = compose(camera, panes(site, camera))
                browser.get("about:blank")
                FILE.write_bytes(reduce(browser, picture))
        finally:
            site.discard()
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")  # noqa: T201, a script tells what it made


if __name__ == "__main__":
    main()
