"""What every sub-command has: help, documentation, and Django's own arguments behind its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from pytest_django import Settings

from realtime.config import sources
from realtime.serving import serving
from realtime.tools.commands import SUB_COMMANDS
from realtime.tools.doctor import network, nodes, postgresql, redis, site
from realtime.tools.doctor.service import RunningService
from realtime.tools.remote import Remote
from tests.database_server import DatabaseServer, Postgres
from tests.live.tools.command import call, run
from tests.redis_server import RedisServer
from tests.server import ROOT

DOCS = (ROOT / "docs" / "commands.md").read_text()


def test_all_that_was_promised_are_there() -> None:
    """Of the server API all but rpc, which sites answer by hooks; and its document."""
    assert set(SUB_COMMANDS) == {
        *("gentoken", "checktoken", "checkconfig", "genconfig", "doctor"),
        *("publish", "broadcast", "unsubscribe", "disconnect", "presence", "presence_stats"),
        *("history", "history_remove", "channels", "info", "openapi"),
        *("map_publish", "map_remove", "map_read_state", "map_clear"),
        *("schema", "types"),
        *("block", "unblock", "blocked"),
        *("pending", "tables", "top", "tail", "bench", "init"),
    }


@pytest.mark.parametrize("name", SUB_COMMANDS)
def test_help_says_what_a_command_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call(name, "--help")
    printed = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    assert f" realtime {name} " in printed
    assert "--json" in printed
    command = SUB_COMMANDS[name]
    assert " ".join((command.description or command.help).split()) in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ("disconnect", "a\udcff"),
        ("gentoken", "a\udcff"),
        ("publish", "news", "1", "--tag", "a=\udcff"),
        ("broadcast", "1", "news", "a\udcff"),
    ],
    ids=ascii,
)
def test_arguments_that_are_not_utf_8_are_refused(arguments: tuple[str, ...]) -> None:
    # Python reads such bytes of a terminal as lone surrogates
    with pytest.raises(CommandError, match=r"^The argument \w+ is not text in UTF-8.$"):
        call(*arguments)


def test_checks_of_the_doctor_are_documented(
    settings: Settings,
    redis_server: RedisServer,
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> None:
    url = f"postgresql://postgres@127.0.0.1:{start_database(Postgres).port}/postgres"
    settings.REALTIME = {"engine": "postgresql", "database_url": url}
    of_postgresql = [*postgresql.checks(sources.current())]
    settings.REALTIME = {
        "redis_url": redis_server.url,
        "health": True,
        "session_authentication": True,
    }
    config = sources.current()
    service = RunningService(Remote("http://127.0.0.1:9"), config)
    # what looks at Redis looks while it is listed, on connections of this process
    there = [
        *site.checks(config),
        *network.checks(service, "ann"),
        *nodes.checks(service),
        *redis.checks(config),
        *of_postgresql,
    ]
    bus = serving.engines(config).redis(config)
    assert bus is not None
    bus.close_blocking()

    rows = re.findall(r"^\| (`[^|]+`) \| ", DOCS.partition("## The doctor")[2], re.MULTILINE)
    documented = [name for row in rows for name in re.findall("`([^`]+)`", row)]

    assert {check.name for check in there} == {*documented} - {"configuration", "service"}
    assert len(there) == len(documented) - 2


def test_settings_may_be_named_behind_the_command(tmp_path: Path) -> None:
    finished = run(tmp_path, {}, "checkconfig", "--settings", "tests.settings", settings="")
    assert finished.stdout == "The configuration is valid.\n"


def test_unknown_command_lists_the_known_ones(tmp_path: Path) -> None:
    finished = run(tmp_path, {}, "pubish")
    assert finished.returncode == 2
    assert "publish" in finished.stderr
