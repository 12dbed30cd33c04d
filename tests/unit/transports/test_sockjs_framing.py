"""SockJS frames: what is written is what JSON reads; what cannot be read is refused.

SockJS protocol 0.3.4, "Framing and connection state"; protocol reference, section 8.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.transports.emulation.response import ResponseFormat
from realtime.transports.sockjs import framing
from realtime.transports.sockjs.formats import (
    EVENTSOURCE,
    PAGE_PRELUDE_BYTES,
    XHR,
    XHR_STREAMING,
    callback_in,
    frames_in,
    htmlfile,
    jsonp,
)
from tests.unit.parts import quickly

UNSAFE = [
    *range(0x7F, 0xA0),
    0xAD,
    *range(0x600, 0x605),
    0x70F,
    0x17B4,
    0x17B5,
    *range(0x200C, 0x2010),
    *range(0x2028, 0x2030),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF0, 0x10000),
]
"""Characters that some browsers change or drop."""

texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from([*map(chr, UNSAFE)]))


# what is written


@quickly
@given(st.lists(texts, max_size=5))
def test_messages_are_one_line_with_an_array_of_the_texts(frames: list[str]) -> None:
    written = framing.messages(*(frame.encode() for frame in frames)).decode()
    assert written[0] == "a"
    assert json.loads(written[1:]) == frames
    assert not {*written} & {*map(chr, UNSAFE), *map(chr, range(0x20))}


@pytest.mark.parametrize("code", UNSAFE, ids=hex)
def test_unsafe_character_is_written_as_an_escape(code: int) -> None:
    assert framing.messages(chr(code).encode()) == b'a["\\u%04x"]' % code


@pytest.mark.parametrize("text", ["ä", "漢", "🎉", "\U0010ffff", "<&>"])
def test_safe_character_is_written_as_it_is(text: str) -> None:
    assert framing.messages(text.encode()) == f'a["{text}"]'.encode()


@quickly
@given(st.integers(1000, 4999), texts)
def test_close_frame_is_an_array_of_code_and_reason(code: int, reason: str) -> None:
    written = framing.close(code, reason).decode()
    assert written[0] == "c"
    assert json.loads(written[1:]) == [code, reason]
    assert "\n" not in written


# what is read


@quickly
@given(st.lists(texts) | texts, st.booleans())
def test_array_of_strings_or_a_single_one_is_read_as_frames(
    content: list[str] | str, ascii_only: bool
) -> None:
    body = json.dumps(content, ensure_ascii=ascii_only).encode()
    frames = [content] if isinstance(content, str) else content
    assert framing.decode(body) == [frame.encode() for frame in frames]


REFUSED = {
    "nothing": b"",
    "spaces": b"  ",
    "no JSON": b"abc",
    "an array that does not end": b'["x',
    "something after the array": b'["x"]x',
    "a comma too many": b'["x",]',
    "single quotes": b"['x']",
    "null": b"null",
    "a number": b"1",
    "an object": b'{"0":"x"}',
    "a number in the array": b'["x",1]',
    "null in the array": b"[null]",
    "an array in the array": b'[["x"]]',
    "a raw line break in a string": b'["a\nb"]',
    "no UTF-8": b'["\xff"]',
    "half of a UTF-8 character": b'["\xe2\x80"]',
    "a surrogate in UTF-8": b'["\xed\xa0\xbd"]',
    "a hundred thousand brackets": b"[" * 100_000,
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_body_that_is_no_array_of_strings_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="strings"):
        framing.decode(body)


@pytest.mark.parametrize(
    "body",
    [b'["%s"]' % (b"x" * 101), b'"%s"' % (b"x" * 101), b'["x","%s"]' % ("é" * 51).encode()],
    ids=["in an array", "alone", "in UTF-8"],
)
def test_frame_above_the_limit_is_too_large(body: bytes) -> None:
    assert framing.decode(b'["%s"]' % (b"x" * 100), 100)
    with pytest.raises(framing.TooLarge):
        framing.decode(body, 100)


def test_request_of_too_many_frames_is_too_large() -> None:
    most = json.dumps([" "] * framing.MAX_MESSAGES).encode()
    assert len(framing.decode(most)) == framing.MAX_MESSAGES
    with pytest.raises(framing.TooLarge):
        framing.decode(most[:-1] + b',""]')


def test_half_of_a_surrogate_pair_is_read_as_the_replacement_character() -> None:
    assert framing.decode(rb'["a\ud83db","\ud83c\udf89"]') == ["a\ufffdb".encode(), "🎉".encode()]


# frames as they stand in responses

FRAMES = {
    "open": framing.OPEN,
    "heartbeat": framing.HEARTBEAT,
    "messages": framing.messages(b'{"id":1}\n', "</script>\u2028🎉'\"\\".encode()),
    "close": framing.close(3001, '{"reason":"shutdown","reconnect":true}'),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


WRAPPED = {
    "xhr": (XHR, "", "\n"),
    "xhr_streaming": (XHR_STREAMING, "", "\n"),
    "eventsource": (EVENTSOURCE, "data: ", "\r\n\r\n"),
    "jsonp": (jsonp("cb.x"), "cb.x(", ");\r\n"),
    "htmlfile": (htmlfile("cb"), "<script>\np(", ");\n</script>\r\n"),
}
"""Format, and what stands before and behind a frame."""


@frames
@pytest.mark.parametrize(("transport", "begin", "end"), WRAPPED.values(), ids=WRAPPED)
def test_frame_stands_whole_in_a_response(
    transport: ResponseFormat, begin: str, end: str, frame: bytes
) -> None:
    written = transport.wrap(frame).decode()
    assert written.startswith(begin)
    assert written.endswith(end)
    inside = written.removeprefix(begin).removesuffix(end)
    assert (json.loads(inside) if "(" in begin else inside) == frame.decode()
    if "script" in begin:  # nothing can end the script
        assert not {*inside} & {*"<>&\u2028\u2029"}


def test_prelude_of_htmlfile_is_long_enough_and_names_the_callback() -> None:
    prelude = htmlfile("_jp.abc").prelude
    assert len(prelude) >= PAGE_PRELUDE_BYTES == 1024
    assert b"parent._jp.abc" in prelude


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("c=a-b_c.d", "a-b_c.d"),
        ("x=1&c=%63allback&t=2", "callback"),
        ("callback=_jp.abc123", "_jp.abc123"),
        ("c=" + "A" * 128, "A" * 128),
        ("c=" + "A" * 129, None),
        *[(query, "") for query in ("", "c=", "d=callback")],
        *[(f"c={name}", None) for name in ("%20", "*", "a(", "a%28", "a%0Ab", "a%00", "%C3%A9")],
        *[(f"c={name}", None) for name in ("a;b", "a%3Cb", "%FF", "a+b", "a%0A")],
    ],
)
def test_callback_is_a_name_that_is_safe_in_a_script(query: str, name: str | None) -> None:
    assert callback_in(query) == name


# forms


@pytest.mark.parametrize(
    ("content_type", "body", "frames"),
    [
        ("application/x-www-form-urlencoded", b"d=%5B%22x%22%5D", b'["x"]'),
        ("Application/X-WWW-Form-Urlencoded; charset=utf-8", b"d=%5B%22x%22%5D", b'["x"]'),
        ("application/x-www-form-urlencoded", b"a=1&d=%22+%C3%A4%22&d=2", '" ä"'.encode()),
        ("application/x-www-form-urlencoded", b"a=1", b""),
        ("application/x-www-form-urlencoded", b"d=", b""),
        ("text/plain", b"d=%5B%22x%22%5D", b"d=%5B%22x%22%5D"),
        ("", b'["x"]', b'["x"]'),
    ],
)
def test_frames_of_a_form_are_its_field_d(content_type: str, body: bytes, frames: bytes) -> None:
    assert frames_in(content_type, body) == frames


@pytest.mark.parametrize(
    "body",
    [b"d=%FF", b"\xff=1", b"&".join(b"d=%d" % n for n in range(100))],
    ids=["escaped", "no UTF-8", "a hundred fields"],
)
def test_bad_form_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - which one does not matter
        frames_in("application/x-www-form-urlencoded", body)
