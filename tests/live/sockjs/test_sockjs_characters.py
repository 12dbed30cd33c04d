"""Characters that get lost on the way come through SockJS, in both directions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.sockjs.client import OPTIONS, SERVERS, XHR, connected, data_of, replies
from tests.server import Server

UNSAFE = "".join(
    map(
        chr,
        [
            *range(0x20),
            *range(0x200C, 0x2010),
            *range(0x2028, 0x2030),
            *range(0x2060, 0x2070),
            *range(0xFFF0, 0x10000),
        ],
    )
)
"""Characters that browsers change on the way (SockJS protocol 0.3.4, "JSON Unicode Encoding")."""

WORDS = {
    "ASCII": 'a"\\/b',
    "accents": "é ß ñ",
    "beyond the basic plane": "😀 𝄞 \U0010ffff",
    "line separators": "a\u2028b\u2029c",
    "no characters": "\ufffe\uffff",
    "unsafe": UNSAFE,
    "markup": "<script>&amp;</script>",
    "escapes that are none": r"\\u0041 \n \ud83d",
    "marks that combine": "e\u0301 \u0600\u070f\u17b4 \ufb4e \u2adc \uf900",
}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    # for half of the plane
    options = {**OPTIONS, "websocket_message_size_limit": 256 * 1024}
    return serve(server=request.param, **options)


@pytest.mark.parametrize("text", WORDS.values(), ids=WORDS)
async def test_characters_come_as_they_were_sent_and_unsafe_ones_escaped(
    server: Server, unique: str, text: str
) -> None:
    session = await connected(server, unique)

    await asyncio.to_thread(server.publish, unique, text)
    async with session.receive(XHR) as receiver:
        body = (await receiver.exchange.rest()).decode()

    assert data_of(replies(body.removesuffix("\n"))) == [text]
    assert not set(body.removesuffix("\n")) & set(UNSAFE)


async def test_every_escaped_character_is_read(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    """Browsers' libraries escape the whole frame once more, half of the plane among it."""
    session = await connected(server)
    observer = await connect(server)
    await observer.result("subscribe", {"channel": f"kept:{unique}"})
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000)])) + "😀"
    frame = json.dumps(
        {"id": 5, "method": "publish", "params": {"channel": f"kept:{unique}", "data": text}},
        ensure_ascii=False,
    )
    escaped = "".join(f"\\u{ord(character):04x}" for character in frame[:-7])

    for body in (
        json.dumps([frame]),  # escapes outside ASCII
        json.dumps([frame], ensure_ascii=False),  # and none
        f'["{escaped}' + json.dumps(frame[-7:])[1:] + "]",  # every character
    ):
        assert (await session.post(body.encode())).status == 204
        assert (await observer.publication())["data"] == text


HALVES = {
    "in the frame": r'["{\"id\":5,\"method\":\"publish\",\"params\":'
    r'{\"channel\":\"kept:%s\",\"data\":\"a\\ud83d\"}}"]',
    "in the body": r'["{\"id\":5,\"method\":\"publish\",\"params\":'
    r'{\"channel\":\"kept:%s\",\"data\":\"a\ud83d\"}}"]',
}


@pytest.mark.parametrize("body", HALVES.values(), ids=HALVES)
async def test_lone_surrogate_arrives_as_a_replacement(
    server: Server, connect: Callable[..., Any], unique: str, body: str
) -> None:
    """Browsers escape lone surrogates, which text has that was cut inside an emoji."""
    session = await connected(server)
    observer = await connect(server)
    await observer.result("subscribe", {"channel": f"kept:{unique}"})

    assert (await session.post((body % unique).encode())).status == 204

    assert (await observer.publication())["data"] == "a\ufffd"
