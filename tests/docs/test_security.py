"""The threat model says the defaults and numbers that the code has."""

from __future__ import annotations

import re
import tomllib

import pytest

from admin_panel.standalone import limiter
from realtime.auth import verifier
from realtime.checks import CHECKS
from realtime.clients import dispatch
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
from realtime.engine import memory
from realtime.hooks import runner
from realtime.proxy import client as proxy_client
from realtime.proxy import endpoints
from realtime.transports import bodies, handshake
from realtime.transports.sockjs import framing
from tests.imports import ROOT

TEXT = (ROOT / "docs" / "security.md").read_text()
FIELDS = {**CHANNEL_OPTION_FIELDS, **CONFIG_FIELDS}
ROWS = re.findall(r"^\| [^|]+ \| `(\w+)`[^|]* \| ([\d.]+)[^|]*\|", TEXT, re.MULTILINE)
"""Option and default of each limit that has an option."""


@pytest.mark.parametrize(("name", "default"), ROWS, ids=lambda value: value)
def test_default_of_a_limit_is_that_of_its_option(name: str, default: str) -> None:
    assert str(FIELDS[name].default) == default


def test_limits_of_clients_are_all_there() -> None:
    limits = {
        name
        for name in FIELDS
        if re.search(r"_(limit|max_size|max_length|max_publication_limit|meta_ttl)$", name)
    }
    assert limits - {"websocket_message_size_limit"} <= {name for name, _ in ROWS}
    assert len(ROWS) > 12


@pytest.mark.parametrize(
    "words",
    [
        f"| {handshake.HEAD_TIMEOUT:g} s |",
        f"| {bodies.BODY_TIMEOUT:g} s, and one more for each {bodies.BODY_RATE // 1024} KiB",
        f"| {bodies.HELD_MAX_BYTES // 2**20} MiB for a process",
        f"| {handshake.HEADERS_MAX_BYTES // 1024} KiB | 32 KiB",
        f"| {verifier.TOKEN_MAX_BYTES // 1024} KiB, its header"
        f" {verifier.HEADER_MAX_BYTES // 1024} KiB",
        f"| {framing.MAX_MESSAGES:,} |",
        f"{limiter.PER_ADDRESS} for an address, {limiter.OVERALL} for all, in"
        f" {limiter.WINDOW // 60} minutes",
        f"| {dispatch.COMMANDS_PER_TURN} in one turn",
        f"{runner.MAX_QUEUE_PER_WORKER} waiting calls for each thread",
        f"{endpoints.MAX_CONCURRENT_CALLS} calls at a time, a response of"
        f" {proxy_client.MAX_RESPONSE_BYTES // 2**20} MiB",
        f"at most {memory.MAX_IDLE_STREAMS:,} channels",
    ],
)
def test_number_in_the_threat_model_is_that_of_the_code(words: str) -> None:
    assert words in TEXT


def test_every_pinned_requirement_has_a_hash() -> None:
    text = (ROOT / "requirements.txt").read_text().replace("\\\n", " ")
    pinned = [line for line in text.splitlines() if line and not line.startswith("#")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^a-z0-9-]", needed)[0] for needed in project["dependencies"]}
    for line in pinned:
        assert re.match(r"[a-z0-9.-]+==[^ ]+ .*--hash=sha256:[0-9a-f]{64}", line), line
    assert names <= {line.partition("==")[0] for line in pinned}


def test_checks_in_the_threat_model_exist() -> None:
    documented = " ".join(str(check.__doc__) for check in CHECKS)
    for name in re.findall(r"`realtime\.([EW]\d{3})`", TEXT):
        assert f"{name}: " in documented
