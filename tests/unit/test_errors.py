"""The tables of errors and disconnects: codes, texts, advice."""

from __future__ import annotations

import json

import pytest

from realtime.errors import CLOSE_REASON_MAX_BYTES, DISCONNECTS, ERRORS, Disconnect, Error
from realtime.protocol.v2.codes import closing

ERROR_TABLE = {
    100: "internal server error",
    102: "namespace not found",
    103: "permission denied",
    104: "method not found",
    105: "already subscribed",
    106: "limit exceeded",
    107: "bad request",
    108: "not available",
    109: "token expired",
    110: "expired",
    111: "too many requests",
    112: "unrecoverable position",
}
"""Every error this service gives. 101 is defined and given by nobody."""

DISCONNECT_TABLE = {
    3001: '{"reason":"shutdown","reconnect":true}',
    3002: '{"reason":"invalid token","reconnect":false}',
    3003: '{"reason":"bad request","reconnect":false}',
    3004: '{"reason":"internal server error","reconnect":true}',
    3005: '{"reason":"expired","reconnect":true}',
    3006: '{"reason":"subscription expired","reconnect":true}',
    3007: '{"reason":"stale","reconnect":false}',
    3008: '{"reason":"slow","reconnect":true}',
    3010: '{"reason":"insufficient state","reconnect":true}',
    3012: '{"reason":"force disconnect","reconnect":false}',
    3013: '{"reason":"connection limit","reconnect":false}',
    1009: "",
}
"""Close code → close reason. 3000, 3009 and 3011 never reach a WebSocket client."""


def test_error_codes_are_those_of_the_table_each_once() -> None:
    assert [(kind.code, kind.message) for kind in ERRORS] == list(ERROR_TABLE.items())


@pytest.mark.parametrize("kind", ERRORS)
def test_error_has_the_code_and_message_of_its_class(kind: type[Error]) -> None:
    error = kind()
    assert (error.code, error.message) == (kind.code, ERROR_TABLE[kind.code])
    assert str(error) == f"{kind.code}: {kind.message}"


def test_error_of_the_application_has_code_and_message_of_its_own() -> None:
    error = Error(1001, "no credit")
    assert (error.code, error.message, str(error)) == (1001, "no credit", "1001: no credit")
    assert (Error().code, Error().message) == (100, "internal server error")


@pytest.mark.parametrize("kind", ERRORS)
def test_temporary_errors_are_those_of_the_table(kind: type[Error]) -> None:
    assert kind().temporary is (kind.code in (100, 111))
    assert Error.received(kind.code, "theirs").temporary is (kind.code in (100, 111))


def test_application_says_whether_its_error_is_temporary() -> None:
    assert not Error(1001, "no credit").temporary
    assert Error(1001, "busy", temporary=True).temporary
    assert not Error.received(400, "theirs").temporary
    assert Error.received(400, "theirs", temporary=True).temporary


@pytest.mark.parametrize("code", [0, 17, 100, 103, 999, 2**32])
def test_error_codes_of_the_protocol_are_not_for_sites(code: int) -> None:
    with pytest.raises(ValueError, match="begin at 1000"):
        Error(code, "mine")
    received = Error.received(code, "theirs")
    assert (received.code, str(received)) == (code, f"{code}: theirs")


@pytest.mark.parametrize("code", [1000, 3000, 3012, 3500, 3999, 5000])
def test_close_codes_of_the_protocol_are_not_for_sites(code: int) -> None:
    with pytest.raises(ValueError, match="4000 to 4999"):
        Disconnect(code, "mine")
    received = Disconnect.received(code, "theirs", True)
    assert (received.code, received.advice) == (code, '{"reason":"theirs","reconnect":true}')


@pytest.mark.parametrize("kind", [Error, Disconnect])
def test_code_is_a_number(kind: type[Error] | type[Disconnect]) -> None:
    with pytest.raises(TypeError, match="integer"):
        kind("1001", "mine")  # type: ignore[arg-type]


def test_disconnect_codes_are_those_of_the_table_each_once() -> None:
    assert sorted(kind.code for kind in DISCONNECTS) == sorted(DISCONNECT_TABLE)


@pytest.mark.parametrize("kind", DISCONNECTS)
def test_close_reason_carries_the_advice(kind: type[Disconnect]) -> None:
    assert kind().advice == DISCONNECT_TABLE[kind.code]


@pytest.mark.parametrize("kind", DISCONNECTS)
def test_advice_says_what_the_attributes_say(kind: type[Disconnect]) -> None:
    assert kind.advice in (
        "",
        f'{{"reason":"{kind.reason}","reconnect":{str(kind.reconnect).lower()}}}',
    )


@pytest.mark.parametrize("kind", DISCONNECTS)
def test_advice_fits_a_close_frame(kind: type[Disconnect]) -> None:
    assert len(kind.advice.encode()) <= 123


def test_room_of_a_close_frame_is_that_of_the_standard() -> None:
    # a control frame holds 125 bytes, two of them are the code
    assert CLOSE_REASON_MAX_BYTES == 125 - 2


def test_reason_that_does_not_fit_cannot_be_defined() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        type("TooLong", (Disconnect,), {"code": 4000, "reason": "é" * 30, "reconnect": True})


def test_reason_that_just_fits_can_be_defined() -> None:
    # {"reason":"","reconnect":true} has 30 bytes
    kind = type("Longest", (Disconnect,), {"code": 4000, "reason": "a" * 93, "reconnect": True})
    assert len(kind().advice) == 123


@pytest.mark.parametrize(
    "reason",
    ["a" * 300, "é" * 300, "\U0001f600" * 100, "a" + "\U0001f600" * 100, "\ud83d" * 300, '"' * 99],
    ids=ascii,
)
@pytest.mark.parametrize("reconnect", [True, False])
def test_reason_of_a_site_is_cut_behind_a_character(reason: str, reconnect: bool) -> None:
    disconnect = Disconnect(4000, reason, reconnect)
    clean = reason.replace("\ud83d", "\ufffd")
    assert clean.startswith(disconnect.reason)
    longer = clean[: len(disconnect.reason) + 1]
    advice = json.dumps({"reason": longer, "reconnect": reconnect}, separators=(",", ":"))
    assert len(disconnect.advice) <= CLOSE_REASON_MAX_BYTES < len(advice)
    assert len(closing(disconnect)[1].encode()) <= CLOSE_REASON_MAX_BYTES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ud83d", "\ufffd"),
        ("a\ude00b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("h\xe9 \U0001f600", "h\xe9 \U0001f600"),
    ],
    ids=ascii,
)
def test_texts_of_a_site_are_characters(text: str, expected: str) -> None:
    assert Error(1000, text).message == expected
    assert Error.received(7, text).message == expected
    assert Disconnect(4000, text).reason == expected
    assert Disconnect.received(4000, text, False).reason == expected
