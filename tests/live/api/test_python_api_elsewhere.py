"""`realtime` in processes that serve no clients: shells, commands, workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

import realtime
from tests.processes import ROOT, run_python

TIMEOUT = 60.0

SET_UP = "import django; django.setup(); import asyncio, realtime\n"
ADVICE = (
    "Call this in the process of the ASGI server, send the command to its /api, or name a"
    " Redis (SERVICE_REDIS_URL) or PostgreSQL (SERVICE_ENGINE=postgresql), which connects all"
    " processes. For tests and scripts that need not reach clients, set engine to dummy."
)

FUNCTIONS = {
    "publish": "'a', 1",
    "publish_many": "[('a', 1)]",
    "broadcast": "['a'], 1",
    "subscribe": "'17', 'a'",
    "unsubscribe": "'17'",
    "disconnect": "'17'",
    "refresh": "'17'",
    "block": "'17', 1",
    "unblock": "'17'",
    "blocked": "",
    "presence": "'a'",
    "presence_stats": "'a'",
    "history": "'a'",
    "history_remove": "'a'",
    "position": "'a'",
    "positions": "['a']",
    "channels": "",
    "info": "",
    "nodes": "",
    "connections": "'17'",
    "subscribers": "['a']",
    "round_trip": "",
}


def run(arguments: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, without settings of Django or the service but those given."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SERVICE_", "DJANGO_"))
    }
    return run_python(arguments, ROOT, {**ours, **environment}, timeout=TIMEOUT)


def output(code: str, **environment: str) -> str:
    """What a program prints, which must succeed."""
    finished = run(["-c", code], environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_functions_and_their_async_versions_raise_not_serving() -> None:
    calls = {name: f"realtime.{name}({arguments})" for name, arguments in FUNCTIONS.items()}
    async_versions = {
        f"a{name}": f"asyncio.run(realtime.a{name}({arguments}))"
        for name, arguments in FUNCTIONS.items()
    }
    lines = [
        f"try:\n    {call}\nexcept realtime.NotServing as error:\n    print({name!r}, error)"
        for name, call in (calls | async_versions).items()
    ]

    printed = output(SET_UP + "\n".join(lines), DJANGO_SETTINGS_MODULE="tests.settings")

    messages = dict(line.split(" ", 1) for line in printed.splitlines())
    assert list(messages) == [*calls, *async_versions]
    assert all(message.endswith(ADVICE) for message in messages.values()), messages


def test_uncaught_not_serving_ends_a_program_with_the_advice_last() -> None:
    code = SET_UP + "realtime.publish('a', 1)"
    finished = run(["-c", code], {"DJANGO_SETTINGS_MODULE": "tests.settings"})
    assert finished.returncode == 1
    last = finished.stderr.strip().splitlines()[-1]
    assert "NotServing: " in last
    assert last.endswith(ADVICE)


def test_not_serving_is_not_an_error_of_the_protocol() -> None:
    assert not issubclass(realtime.NotServing, realtime.Error)


def test_shell_of_the_ready_site_gets_advice(tmp_path: Path) -> None:
    code = "import realtime\ntry:\n    realtime.publish('a', 1)\n"
    code += "except realtime.NotServing as error:\n    print(error)"
    finished = run(["manage.py", "shell", "-c", code], {"DJANGO_DATA_DIR": str(tmp_path)})
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip().endswith(ADVICE)


def test_data_without_a_json_form_are_a_type_error_here_too() -> None:
    code = SET_UP + "try:\n    realtime.publish('a', object())\nexcept TypeError:\n    print('yes')"
    assert output(code, DJANGO_SETTINGS_MODULE="tests.settings") == "yes\n"


# imports


LAZY = {
    "the package": "import realtime",
    "its errors": "from realtime import Error, NotServing",
    "pure modules": "import realtime.errors, realtime.config.reader, realtime.channel_rules",
    "the protocol": "import realtime.protocol.v1.json, realtime.protocol.v1.protobuf",
}


@pytest.mark.parametrize("statement", LAZY.values(), ids=LAZY)
def test_importing_does_not_import_django(statement: str) -> None:
    code = f"{statement}\nimport sys\nprint([n for n in sys.modules if n.startswith('django')])"
    command = [sys.executable, "-c", code]  # a forked process has Django loaded
    assert subprocess.check_output(command, cwd=ROOT, text=True) == "[]\n"


def test_every_function_and_its_async_version_can_be_imported_and_is_documented() -> None:
    names = {*FUNCTIONS, *(f"a{name}" for name in FUNCTIONS)}
    others = {name for name in realtime.__all__ if name[0].isupper()}  # exceptions and results
    assert set(realtime.__all__) == names | others | {"channel", "listen", "map", "observer_token"}
    assert [name for name in names if not getattr(realtime, name).__doc__] == []
    assert [name for name in others if not isinstance(getattr(realtime, name), type)] == []


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = realtime.nope


def test_api_of_a_process_that_serves_no_clients_answers_503(settings: Settings) -> None:
    """Under WSGI, for example."""
    settings.REALTIME = {"api_key": "k"}

    response = Client().post(
        "/api",
        b'{"method":"info"}',
        content_type="application/json",
        headers={"Authorization": "apikey k"},
    )

    assert (response.status_code, response.content) == (503, b"")
