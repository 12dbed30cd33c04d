"""Frames: each form is built once, and the bytes on the wire are those of RFC 6455."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.protocol.frames import Frame, event_bytes, http_stream_bytes, websocket_bytes


class Maker:
    """Makes a form and counts its calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0

    def __call__(self, frame: Frame) -> tuple[str, bytes]:
        self.calls += 1
        return self.name, frame.data


@pytest.mark.parametrize("order", ["aaa", "aba", "abcabc", "cbaabc"])
def test_each_form_is_built_once_in_whatever_order_transports_ask(order: str) -> None:
    frame = Frame(b"data", False)
    makers = {name: Maker(name) for name in order}
    forms = [frame.form(makers[name]) for name in order]
    assert forms == [(name, b"data") for name in order]
    assert [maker.calls for maker in makers.values()] == [1] * len(makers)


def test_frame_without_data_has_forms_too() -> None:
    frame = Frame(b"", False)
    makers: list[Callable[[Frame], bytes]] = [lambda frame: frame.data, websocket_bytes]
    assert [frame.form(make) for make in makers * 2] == [b"", b"\x81\x00"] * 2


@pytest.mark.parametrize(
    ("size", "header"),
    [
        (0, "00"),
        (1, "01"),
        (125, "7d"),
        (126, "7e007e"),
        (65535, "7effff"),
        (65536, "7f0000000000010000"),
    ],
)
@pytest.mark.parametrize(("binary", "first"), [(False, "81"), (True, "82")], ids=["text", "binary"])
def test_frame_on_the_wire_is_final_and_unmasked_and_has_its_length(
    size: int, header: str, binary: bool, first: str
) -> None:
    """RFC 6455, 5.2: 7 bits of length, or 126 and 16 bits, or 127 and 64 bits."""
    data = b"a" * size
    assert websocket_bytes(Frame(data, binary)) == bytes.fromhex(first + header) + data


@pytest.mark.parametrize("messages", [[b"{}"], [b'{"id":1}', b"{}", b'{"push":{}}']])
def test_streams_over_http_carry_a_line_or_an_event_per_message(messages: list[bytes]) -> None:
    frame = Frame(b"\n".join(messages), False)
    assert http_stream_bytes(frame) == b"".join(message + b"\n" for message in messages)
    assert event_bytes(frame) == b"".join(b"data: " + message + b"\n\n" for message in messages)


def test_stream_of_protobuf_carries_frames_as_they_are() -> None:
    assert http_stream_bytes(Frame(b"\x02\x08\n\x00", True)) == b"\x02\x08\n\x00"
