"""The two position variants: offset, and seq with gen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol.codec import requested_offset, split_offset
from realtime.protocol.messages import SubscribeRequest
from tests.unit.parts import quickly


@pytest.mark.parametrize(
    ("offset", "seq", "gen"),
    [
        (0, 0, 0),
        (1, 1, 0),
        (2**32 - 1, 2**32 - 1, 0),
        (2**32, 0, 1),
        (2**64 - 1, 2**32 - 1, 2**32 - 1),
    ],
)
def test_seq_and_gen_are_the_low_and_high_32_bits(offset: int, seq: int, gen: int) -> None:
    assert split_offset(offset) == (seq, gen)


@pytest.mark.parametrize(
    ("request_", "offset"),
    [
        pytest.param(SubscribeRequest(), 0, id="nothing given"),
        pytest.param(SubscribeRequest(offset=5), 5, id="offset"),
        pytest.param(SubscribeRequest(seq=3), 3, id="seq"),
        pytest.param(SubscribeRequest(gen=1), 2**32, id="gen"),
        pytest.param(SubscribeRequest(seq=3, offset=5), 3, id="seq before offset"),
        pytest.param(SubscribeRequest(gen=1, offset=5), 2**32, id="gen before offset"),
        pytest.param(SubscribeRequest(seq=0, gen=0, offset=5), 5, id="zeros are not given"),
    ],
)
def test_either_variant_is_read(request_: SubscribeRequest, offset: int) -> None:
    assert requested_offset(request_) == offset


@quickly
@given(st.integers(0, 2**64 - 1))
def test_a_client_that_hands_back_its_position_is_understood(offset: int) -> None:
    seq, gen = split_offset(offset)

    assert requested_offset(SubscribeRequest(seq=seq, gen=gen)) == offset
    assert requested_offset(SubscribeRequest(offset=offset)) == offset
