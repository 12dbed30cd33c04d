"""Close codes of the second generation: clients decide by the number whether they come back."""

from __future__ import annotations

import pytest

from realtime import errors
from realtime.errors import CLOSE_REASON_MAX_BYTES, DISCONNECTS, Disconnect
from realtime.protocol.codec import Codec
from realtime.protocol.v2.codes import CLOSES
from tests.unit.protocol.v2.parts import CODECS

TABLE: dict[type[Disconnect], tuple[int, str]] = {
    errors.DisconnectShutdown: (3001, "shutdown"),
    errors.DisconnectInvalidToken: (3500, "invalid token"),
    errors.DisconnectBadRequest: (3501, "bad request"),
    errors.DisconnectServerError: (3004, "internal server error"),
    errors.DisconnectExpired: (3005, "connection expired"),
    errors.DisconnectSubscriptionExpired: (3006, "subscription expired"),
    errors.DisconnectStale: (3502, "stale"),
    errors.DisconnectSlow: (3008, "slow"),
    errors.DisconnectInsufficientState: (3010, "insufficient state"),
    errors.DisconnectForced: (3503, "force disconnect"),
    errors.DisconnectConnectionLimit: (3504, "connection limit"),
    errors.DisconnectMessageTooBig: (1009, ""),
    errors.DisconnectNoPong: (3012, "no pong"),
    errors.DisconnectTooManyRequests: (3013, "too many requests"),
    errors.DisconnectChannelLimit: (3505, "channel limit"),
    errors.DisconnectPermissionDenied: (3507, "permission denied"),
}


def comes_back(code: int) -> bool:
    """What the clients' own rule makes of a close code."""
    return (code < 3500 and code != 1009) or 4000 <= code < 4500 or code >= 5000


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.format)
@pytest.mark.parametrize("kind", TABLE)
def test_disconnect_has_code_and_plain_reason(kind: type[Disconnect], codec: Codec) -> None:
    assert codec.closing(kind()) == TABLE[kind]


def test_every_disconnect_has_a_row() -> None:
    assert set(CLOSES) == set(TABLE)
    assert set(DISCONNECTS) <= set(TABLE)


def test_no_two_disconnects_share_a_code() -> None:
    codes = [code for code, _ in CLOSES.values()]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize("kind", [kind for kind in TABLE if kind.advice])
def test_clients_of_both_generations_take_the_same_advice(kind: type[Disconnect]) -> None:
    assert comes_back(TABLE[kind][0]) is kind.reconnect


@pytest.mark.parametrize(
    ("code", "reconnect", "expected"),
    [
        (4000, True, 4000),
        (4499, True, 4499),
        (4000, False, 4500),
        (4001, False, 4501),
        (4499, False, 4999),
        (4500, False, 4500),
        (4999, False, 4999),
        (4500, True, 4000),
        (4999, True, 4499),
    ],
)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.format)
def test_code_of_a_site_is_moved_where_it_says_what_the_site_says(
    code: int, reconnect: bool, expected: int, codec: Codec
) -> None:
    assert codec.closing(Disconnect(code, "mine", reconnect)) == (expected, "mine")


@pytest.mark.parametrize("reconnect", [True, False])
@pytest.mark.parametrize("code", [0, 1000, 2999, 3000, 3012, 3013, 3500, 3999, 5000, 2**32])
def test_code_of_an_endpoint_says_whether_to_come_back(code: int, reconnect: bool) -> None:
    closed, _ = CODECS[0].closing(Disconnect.received(code, "theirs", reconnect))
    assert comes_back(closed) is reconnect
    assert 3000 <= closed <= 4999


def test_disconnect_of_a_site_keeps_nothing_of_the_one_it_is_made_of() -> None:
    class Blocked(errors.DisconnectForced):
        code, reason = 4100, "blocked"

    assert CODECS[0].closing(Blocked()) == (4600, "blocked")


@pytest.mark.parametrize("reason", ["half \ud83d", "é" * 14, "\n<"])
def test_reason_can_be_sent(reason: str) -> None:
    _, text = CODECS[0].closing(Disconnect(4000, reason))
    assert len(text.encode()) <= CLOSE_REASON_MAX_BYTES
    assert all(codec.disconnect(Disconnect(4000, reason)) for codec in CODECS)
