"""The documentation lists what the code has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from realtime import checks
from realtime.checks import OPTION_ERRORS
from realtime.errors import DISCONNECTS, ERRORS
from realtime.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
from realtime.server_api.methods import METHODS

DOCS = Path(__file__).resolve().parents[2] / "docs"
WORDS = {True: "on", False: "off", None: "not set", "": "empty"}


@pytest.mark.parametrize("name", [*CHANNEL_OPTION_FIELDS, *CONFIG_FIELDS])
def test_option_is_documented_with_its_default(name: str) -> None:
    default = (CHANNEL_OPTION_FIELDS | CONFIG_FIELDS)[name].default
    is_word = isinstance(default, bool | None) or default == ""
    shown = WORDS[default] if is_word else f"`{default}`"

    rows = re.findall(
        rf"^\| `{name}` \| [^|]+ \| ([^|]+) \|", (DOCS / "options.md").read_text(), re.MULTILINE
    )

    assert rows == [shown]


WARNINGS = re.findall(r'id="(realtime\.W[0-9]{3})"', inspect.getsource(checks))


@pytest.mark.parametrize("check", [*OPTION_ERRORS.values(), *WARNINGS])
def test_check_is_documented(check: str) -> None:
    assert f"`{check.removeprefix('realtime.')}`" in (DOCS / "options.md").read_text().replace(
        "realtime.", ""
    )


@pytest.mark.parametrize("method", [row.name for row in METHODS if row.name != "rpc"])
def test_method_of_the_server_api_is_documented(method: str) -> None:
    assert f"| `{method}` |" in (DOCS / "http-api.md").read_text()


@pytest.mark.parametrize("disconnect", [d for d in DISCONNECTS if d.advice])
def test_disconnect_is_documented(disconnect: type) -> None:
    reconnect = "yes" if disconnect.reconnect else "no"
    row = f"| {disconnect.code} | {disconnect.reason} | {reconnect} |"
    assert row in (DOCS / "clients.md").read_text()


def test_errors_of_the_documented_server_api_exist() -> None:
    documented = re.findall(
        r"^\| (1\d\d) \| ([^|]+) \|", (DOCS / "http-api.md").read_text(), re.MULTILINE
    )
    existing = {(str(error.code), error.message) for error in ERRORS}

    assert documented
    assert {(code, message.strip()) for code, message in documented} <= existing
