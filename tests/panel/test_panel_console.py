"""What the console knows of the API's methods, and how it lays out JSON."""

from __future__ import annotations

import pytest

from admin_panel.pages.console import laid_out
from admin_panel.pages.console_methods import BY_NAME, command
from realtime.server_api import methods


def test_every_method_of_the_api_is_offered_with_an_example_it_accepts() -> None:
    assert set(BY_NAME) == set(methods.METHOD_NUMBERS)
    for row in methods.METHODS:
        if row.decode is not None:
            row.decode(BY_NAME[row.name].example.encode())


LAID_OUT = [
    (b'{"a":1.50}', '{\n  "a": 1.50\n}'),
    (rb'"\ud83d"', r'"\ufffd"'),
    (b'{"a":"' + b"x" * 30_000 + b'"}', '{\n  "a": "' + "x" * 30_000 + '"\n}'),
]


@pytest.mark.parametrize(("text", "shown"), LAID_OUT, ids=["numbers", "half a pair", "long"])
def test_json_is_indented_and_nothing_else(text: bytes, shown: str) -> None:
    assert laid_out(text) == shown


def test_json_that_is_nested_deeply_is_not_blown_up() -> None:
    nested = b"[" * 500 + b"]" * 500
    text = b"[" + b",".join([nested] * 50) + b"]"

    assert len(laid_out(text)) < 2 * len(text)


def test_command_the_api_would_refuse_has_no_targets() -> None:
    assert command(BY_NAME["publish"], '{"channel": 1}').targets == []
    assert command(BY_NAME["publish"], "").targets == []
