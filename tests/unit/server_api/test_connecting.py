"""What `realtime.subscribe` takes. Wrong arguments are refused before a process is asked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

import realtime


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"user": 1.5}, TypeError),
        ({"channel": 1}, TypeError),
        ({"client": None}, TypeError),
        ({"user": "a\ud83d"}, TypeError),
        ({"client": "a\ud83d"}, TypeError),
        ({"session": "a\ud83d"}, TypeError),
        ({"recover_since": (1, "a\ud83d")}, TypeError),
        ({"info": 1j}, TypeError),
        ({"data": 1j}, TypeError),
        ({"expires_at": datetime(2030, 1, 1)}, ValueError),
        ({"expires_at": "soon"}, TypeError),
        ({"recover_since": -1}, ValueError),
        ({"recover_since": True}, TypeError),
        ({"recover_since": (1, None)}, TypeError),
        ({"override": {"history_size": 5}}, ValueError),
        ({"override": {"presence": 1}}, TypeError),
    ],
    ids=ascii,
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        realtime.subscribe(**{"user": "17", "channel": "a"} | arguments)
