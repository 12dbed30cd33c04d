"""tail: publications and frames of two nodes, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.live.clusters import Cluster, frozen, name_of
from tests.live.configurations import NAMESPACES, Connect
from tests.live.tools.command import run, run_here
from tests.live.tools.going_on import GoingOn
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ROOT, Server

OPTIONS: dict[str, Any] = {
    "namespaces": NAMESPACES,
    "redis_prefix": "tail",
    "history_size": 5,
    "history_lifetime": 60,
}
ADD_OPERATOR = (
    "import django; django.setup();"
    " from django.contrib.auth import get_user_model;"
    " get_user_model().objects.create_superuser('ann', '', 'x')"
)


@pytest.fixture(scope="module")
def servers(shared_cluster: Cluster) -> list[Server]:
    return shared_cluster(**OPTIONS)


@pytest.fixture
def options(redis_server: RedisServer) -> dict[str, Any]:
    return {**OPTIONS, "redis_url": redis_server.url}


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of processes whose database has the admin's log and the operator ann."""
    directory = tmp_path_factory.mktemp("admin")
    database = {"TEST_DATABASE": str(directory / "site.sqlite3")}
    environment = {**os.environ, **database, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    for command in (["-m", "django", "migrate", "-v0"], ["-c", ADD_OPERATOR]):
        finished = run_python(command, ROOT, environment)
        assert finished.returncode == 0, finished.stderr
    return database


def next_of(command: GoingOn, kind: str) -> dict[str, Any]:
    """The next line about something of this kind."""
    while True:
        line: dict[str, Any] = json.loads(command.line())
        if line.get("kind") == kind:
            return line


def logged(database: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Object, message and model of the entries in the admin's log."""
    with sqlite3.connect(database["TEST_DATABASE"]) as connection:
        return connection.execute(
            "SELECT object_id, change_message, model FROM django_admin_log"
            " LEFT JOIN django_content_type ON django_content_type.id = content_type_id"
        ).fetchall()


async def test_publications_of_all_nodes_are_shown_once(
    servers: list[Server], connect: Connect, options: dict[str, Any], unique: str, tmp_path: Path
) -> None:
    clients = [await connect(server) for server in servers]
    for client in clients:
        await client.result("subscribe", {"channel": f"{unique}-a"})
    await clients[1].result("subscribe", {"channel": f"{unique}-b"})
    with GoingOn(tmp_path, options, "tail", f"{unique}-*", "--json") as command:
        number = 0
        while not command.has_output():  # until it follows
            servers[0].publish(f"{unique}-a", {"n": number})
            number += 1
        servers[0].publish(f"{unique}-b", {"text": "\x1b[2J", "token": "s3cr3t"})
        shown = [next_of(command, "published")]
        while shown[-1]["channel"] != f"{unique}-b":
            shown.append(next_of(command, "published"))
        command.send(signal.SIGINT)

        assert command.ended() == (0, "")

    offsets = [line["offset"] for line in shown[:-1]]
    assert offsets == list(range(offsets[0], number + 1))
    assert json.loads(shown[-1]["text"]) == {"text": "\x1b[2J", "token": "***"}
    # no more than its two subscribers, which got all of them
    assert servers[0].api("presence_stats", channel=unique).get("error", {}).get("code") == 108


async def test_frames_of_a_user_are_shown_in_both_directions_and_logged(
    servers: list[Server],
    connect: Connect,
    options: dict[str, Any],
    unique: str,
    tmp_path: Path,
    admin: Mapping[str, str],
) -> None:
    there = await connect(servers[0], user=unique)
    arguments = ("tail", "--user", unique, "--operator", "ann", "--json")
    with GoingOn(tmp_path, options, *arguments, environment=admin) as command:
        assert next_of(command, "there")["client"] == there.client
        later = await connect(servers[1], user=unique)
        assert next_of(command, "opened")["client"] == later.client
        await later.result("subscribe", {"channel": f"{unique}\x1b[2J"})
        received = next_of(command, "received")
        sent = next_of(command, "sent")
        command.close_output()

        assert command.ended() == (0, "")

    assert (received["client"], received["node"]) == (later.client, name_of(servers[1]))
    assert json.loads(received["text"])["params"] == {"channel": f"{unique}\x1b[2J"}
    assert sent["client"] == later.client
    await later.quiet()
    [(_, message, model)] = [entry for entry in logged(admin) if entry[0] == unique]
    assert model == "connection", "the panel's log does not list it"
    assert message.startswith("Frames followed: 300 s, with payloads (")


def test_user_is_followed_only_in_the_name_of_an_operator(
    servers: list[Server], options: dict[str, Any], admin: Mapping[str, str], tmp_path: Path
) -> None:
    without_table = {"TEST_DATABASE": str(tmp_path / "empty.sqlite3")}

    unknown = run(tmp_path, options, "tail", "--user", "17", "--operator", "x", environment=admin)
    no_log = run(
        tmp_path, options, "tail", "--user", "17", "--operator", "ann", environment=without_table
    )

    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "There is no Django user 'x'." in unknown.stderr
    assert (no_log.returncode, no_log.stdout) == (1, "")
    assert "only with an entry in the admin's log" in no_log.stderr


async def test_text_has_no_control_characters(
    servers: list[Server], connect: Connect, options: dict[str, Any], unique: str, tmp_path: Path
) -> None:
    client = await connect(servers[0])
    name = f"{unique}\x1b[2J"
    await client.result("subscribe", {"channel": name})
    with GoingOn(tmp_path, options, "tail", f"{unique}*") as command:
        while not command.has_output():
            servers[1].publish(name, "\x1b[2J\x9b\u202e")
        line = command.line()

    moment, subject, text = line.split(" ", 2)
    assert (len(moment), subject) == (12, f"{unique}\\x1b[2J")
    assert text == '"\\u001b[2J\\x9b\\u202e"'


def test_node_that_does_not_answer_is_named_once(
    servers: list[Server], options: dict[str, Any]
) -> None:
    with frozen(servers[1]):
        finished = run_here(options, "tail", "nothing", "--seconds", "3")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == [f"-- No answer from {name_of(servers[1])}"]


def test_it_goes_on_while_redis_is_away(tmp_path: Path) -> None:
    options = {"redis_url": "redis://127.0.0.1:1"}
    finished = run(tmp_path, options, "tail", "a", "--seconds", "2")
    assert (finished.returncode, finished.stderr) == (0, "")
    [line] = finished.stdout.splitlines()
    assert line.startswith("-- Redis is not available: ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "Name either channels, or a user"),
        (("a", "--user", "17"), "Name either channels, or a user"),
        (("",), "An empty name"),
        (("a" * 301,), "An empty name, or one that is too long"),
        (("--user", ""), "An empty name"),
        (("a",), "Only processes that share a Redis"),
    ],
)
def test_it_says_why_there_is_nothing_to_follow(arguments: tuple[str, ...], reason: str) -> None:
    finished = run_here({}, "tail", *arguments)
    assert finished.returncode == 1
    assert reason in finished.stderr


@pytest.mark.parametrize("seconds", ["0", "3601", "nan", "x"])
def test_time_is_bounded(seconds: str) -> None:
    assert run_here({}, "tail", "a", "--seconds", seconds).returncode == 2
