"""Small PNG files: at most 256 colours, which is enough for pages of text.

The browser reads the picture and counts its colours, so nothing else has to be installed.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

from selenium.webdriver import Chrome

# The most frequent colours stay; each of the others becomes the nearest of them.
REDUCE = """
const [encoded, done] = arguments;
(async () => {
  const picture = await fetch("data:image/png;base64," + encoded).then((each) => each.blob());
  const bitmap = await createImageBitmap(picture);
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const sorted = [...counts].sort(([, one], [, other]) => other - one).map(([colour]) => colour);
  const palette = sorted.slice(0, 256);
  const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  const distance = (one, other) =>
    parts(one).reduce((sum, part, i) => sum + (part - parts(other)[i]) ** 2, 0);
  const index = new Map(palette.map((colour, i) => [colour, i]));
  for (const colour of sorted.slice(256)) {
    let nearest = 0;
    for (let i = 1; i < palette.length; i++) {
      if (distance(colour, palette[i]) < distance(colour, palette[nearest])) nearest = i;
    }
    index.set(colour, nearest);
  }
  const bytes = Uint8Array.from(pixels, (pixel) => index.get(pixel));
  const reader = new FileReader();
  reader.onload = () =>
    done({ width, height, palette: palette.map(parts), indexes: reader.result.split(",")[1] });
  reader.readAsDataURL(new Blob([bytes]));
})();
"""


def reduce(browser: Chrome, png: str) -> bytes:
    """A picture (PNG in base64) as a small PNG file. The browser's page must have no CSP."""
    reduced: dict[str, Any] = browser.execute_async_script(REDUCE, png)
    width, height = reduced["width"], reduced["height"]
    indexes = base64.b64decode(reduced["indexes"])
    lines = (indexes[start : start + width] for start in range(0, width * height, width))
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", b"".join(map(bytes, reduced["palette"]))),
            # each line begins with its filter: none
            _chunk(b"IDAT", zlib.compress(b"".join(b"\0" + line for line in lines), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
