"""Small PNG files, also animated: at most 256 colours, which is enough for pages of text.

The browser reads the picture and counts its colours, so nothing else has to be installed.
"""

from __future__ import annotations

import base64
import itertools
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from selenium.webdriver import Chrome

# The most frequent colours stay; each of the others becomes the nearest of them.
REDUCE = """
const [pictures, done] = arguments;
(async () => {
  const bitmaps = await Promise.all(
    pictures.map(async (encoded) => {
      const picture = await fetch("data:image/png;base64," + encoded);
      return createImageBitmap(await picture.blob());
    }),
  );
  const width = bitmaps[0].width;
  const height = bitmaps[0].height * bitmaps.length;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  bitmaps.forEach((bitmap, i) => context.drawImage(bitmap, 0, i * bitmap.height));
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


class Frame(NamedTuple):
    """A picture of a film."""

    png: str
    """In base64; all of a film have one size."""
    seconds: float


def reduce(browser: Chrome, png: str) -> bytes:
    """Return a picture (PNG in base64) as a small PNG file. The browser's page must have no CSP."""
    return animate(browser, [Frame(png, 0)])


def animate(browser: Chrome, frames: Sequence[Frame]) -> bytes:
    """Return pictures as one PNG file, which plays them again and again if they are several.

    Each but the first has only the lines in which it differs from the one before.
    """
    reduced: dict[str, Any] = browser.execute_async_script(REDUCE, [frame.png for frame in frames])
    width, height = reduced["width"], reduced["height"] // len(frames)
    indexes = base64.b64decode(reduced["indexes"])
    lines = [indexes[at : at + width] for at in range(0, width * height * len(frames), width)]
    pictures = [lines[at : at + height] for at in range(0, len(lines), height)]
    numbers = itertools.count()
    chunks = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", b"".join(map(bytes, reduced["palette"]))),
    ]
    if len(frames) > 1:
        chunks.insert(1, _chunk(b"acTL", struct.pack(">II", len(frames), 0)))
    for number, picture in enumerate(pictures):
        other = [
            at for at in range(height) if number == 0 or picture[at] != pictures[number - 1][at]
        ]
        top, bottom = (other[0], other[-1] + 1) if other else (0, 1)
        # each line begins with its filter: none
        data = zlib.compress(b"".join(b"\0" + line for line in picture[top:bottom]), 9)
        if len(frames) > 1:
            control = (
                next(numbers),
                width,
                bottom - top,
                0,
                top,
                round(frames[number].seconds * 1000),
            )
            chunks.append(_chunk(b"fcTL", struct.pack(">IIIIIHHBB", *control, 1000, 0, 0)))
        if number == 0:
            chunks.append(_chunk(b"IDAT", data))
        else:
            chunks.append(_chunk(b"fdAT", struct.pack(">I", next(numbers)) + data))
    return b"".join([b"\x89PNG\r\n\x1a\n", *chunks, _chunk(b"IEND", b"")])


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
