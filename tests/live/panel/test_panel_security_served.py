"""Anything may stand in the address of a page while the service is there to be asked about it."""

from __future__ import annotations

import httpx
import pytest

from tests.panel.paths import page_path
from tests.ready_site import ReadySite

PARAMETERS = [
    ("channels", "q"),
    ("channels", "page"),
    ("channel", "channel"),
    ("channel", "kept"),
    ("channel", "clients"),
    ("channel/token", "channel"),
    ("channel/data", "offset"),
    ("channel/remove", "channel"),
    ("user", "user"),
    ("user", "page"),
    ("user", "channels"),
    ("user/disconnect", "user"),
    ("user/unsubscribe", "channel"),
    ("publication", "channel"),
    ("publication", "use"),
    ("publication/channels", "q"),
    ("console", "method"),
]
"""Pages and parts that read a parameter, and which."""

VALUES = {
    "nothing": "",
    "null": "a\0b",
    "a line": "a\r\nX-Evil: 1",
    "number too large": "9" * 400,
    "negative": "-1",
    "digit of another script": "\u0661",
    "no number": "NaN",
    "long": "a" * 3000,
    "not ASCII": "\u202e\u00e9",
    "open bracket": "[",
    "stars": "*a" * 60 + "b",
    "no namespace": ":",
    "path": "../../x?y#z",
}


@pytest.mark.parametrize(("page", "parameter"), PARAMETERS, ids=lambda value: value)
def test_any_value_of_a_parameter_is_answered(
    staffed_site: ReadySite, operator: httpx.Client, unique: str, page: str, parameter: str
) -> None:
    staffed_site.publish(f"demo:{unique}", 1)
    about = {"channel": f"demo:{unique}", "user": unique}

    found = {
        name: operator.get(page_path(page, **(about | {parameter: value})))
        for name, value in VALUES.items()
    }

    assert {name: r.status_code for name, r in found.items() if r.status_code >= 500} == {}
    assert not any("X-Evil" in r.headers for r in found.values())
    assert "Traceback" not in staffed_site.log
