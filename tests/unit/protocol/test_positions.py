"""The two position variants: offset, and seq with gen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol.messages import StreamPosition
from realtime.protocol.v1.numbers import split_offset, to_position
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
    ("offset", "seq", "gen", "position"),
    [
        pytest.param(None, None, None, 0, id="nothing given"),
        pytest.param(5, None, None, 5, id="offset"),
        pytest.param(None, 3, None, 3, id="seq"),
        pytest.param(None, None, 1, 2**32, id="gen"),
        pytest.param(5, 3, None, 3, id="seq before offset"),
        pytest.param(5, None, 1, 2**32, id="gen before offset"),
        pytest.param(5, 0, 0, 5, id="zeros are not given"),
    ],
)
def test_either_variant_is_read(
    offset: int | None, seq: int | None, gen: int | None, position: int
) -> None:
    assert to_position(offset, seq, gen, "e") == StreamPosition(position, "e")


def test_client_may_leave_the_epoch_out() -> None:
    assert to_position(5, None, None, None) == StreamPosition(5, "")


@quickly
@given(st.integers(0, 2**64 - 1))
def test_a_client_that_returns_its_position_is_understood(offset: int) -> None:
    seq, gen = split_offset(offset)
    position = StreamPosition(offset, "e")
    assert to_position(None, seq, gen, "e") == position
    assert to_position(offset, None, None, "e") == position
