"""top: what it shows of two nodes, and how it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.clusters import Cluster, frozen, name_of, nodes
from tests.live.configurations import NAMESPACES, Connect
from tests.live.tools.command import run, run_here
from tests.live.tools.going_on import GoingOn, Terminal
from tests.redis_server import RedisServer
from tests.server import Server, wait_until

OPTIONS: dict[str, Any] = {"namespaces": NAMESPACES, "redis_prefix": "top"}
ONCE = ("top", "--once", "--interval", "0.5", "--limit", "100")


@pytest.fixture(scope="module")
def servers(shared_cluster: Cluster) -> list[Server]:
    started: list[Server] = shared_cluster(**OPTIONS)
    # a node that has just started is listed a moment later
    wait_until(lambda: len(nodes(started[0])) == 2)
    return started


@pytest.fixture
def options(redis_server: RedisServer) -> dict[str, Any]:
    return {**OPTIONS, "redis_url": redis_server.url}


async def test_it_shows_nodes_channels_and_namespaces(
    servers: list[Server], connect: Connect, options: dict[str, Any], unique: str
) -> None:
    for server in servers:
        client = await connect(server, user=unique)
        await client.result("subscribe", {"channel": unique})

    finished = run_here(options, *ONCE, "--sort", "subscribers", "--json")

    assert finished.returncode == 0, finished.stderr
    shown = json.loads(finished.stdout)
    assert {node["name"] for node in shown["nodes"]} == {name_of(server) for server in servers}
    assert all(node["connections"] >= 1 for node in shown["nodes"])
    assert all(node["rates"]["cpu"] >= 0 for node in shown["nodes"])
    assert shown["missing"] == []
    [channel] = [each for each in shown["channels"] if each["channel"] == unique]
    assert (channel["subscribers"], channel["publications"]) == (2, 0)
    [top_level] = [each for each in shown["namespaces"] if not each["namespace"]]
    assert top_level["subscribers"] >= 2


async def test_text_has_a_row_for_each_and_no_control_characters(
    servers: list[Server], connect: Connect, options: dict[str, Any], unique: str
) -> None:
    client = await connect(servers[0], user=unique)
    name = f"{unique}\x1b[2J" + "x" * 200
    await client.result("subscribe", {"channel": name})

    finished = run_here(options, *ONCE, "--sort", "subscribers")

    assert finished.returncode == 0, finished.stderr
    assert "\x1b" not in finished.stdout
    [row] = [line for line in finished.stdout.splitlines() if line.startswith(unique)]
    shown, subscribers, publications = row.split()
    assert shown.startswith(f"{unique}\\x1b[2Jxxx")
    assert (len(shown), shown[-1], subscribers, publications) == (48, "…", "1", "0.0")


def test_node_that_does_not_answer_is_named(servers: list[Server], options: dict[str, Any]) -> None:
    with frozen(servers[1]):
        finished = run_here(options, *ONCE)
    assert finished.returncode == 0, finished.stderr
    assert f"No answer from {name_of(servers[1])}" in finished.stdout.splitlines()
    assert "\n" + name_of(servers[0]) in finished.stdout


def test_it_goes_on_until_ctrl_c(
    servers: list[Server], options: dict[str, Any], tmp_path: Path
) -> None:
    with GoingOn(tmp_path, options, "top", "--interval", "0.5", "--json") as command:
        looks = [json.loads(command.line()) for _ in range(2)]
        command.send(signal.SIGINT)
        assert command.ended() == (0, "")
    assert looks[0]["nodes"][0]["rates"]["cpu"] is not None
    assert len(looks[1]["nodes"]) == 2


def test_it_ends_when_its_pipe_is_closed(
    servers: list[Server], options: dict[str, Any], tmp_path: Path
) -> None:
    with GoingOn(tmp_path, options, "top", "--interval", "60") as command:
        command.line()
        command.close_output()
        assert command.ended() == (0, "")


def test_it_goes_on_while_redis_is_away(
    own_redis: Callable[..., RedisServer], own_server: Callable[..., Server], tmp_path: Path
) -> None:
    redis = own_redis()
    options = {**OPTIONS, "redis_url": redis.url, "redis_read_timeout": 1}
    server = own_server(**options)

    with GoingOn(tmp_path, options, "top", "--interval", "0.5", "--json") as command:

        def next_with(field: str) -> Any:
            while field not in (look := json.loads(command.line())):
                pass
            return look[field]

        next_with("nodes")
        redis.stop()
        assert next_with("error")["message"].startswith("Redis is not available: ")
        redis.start()
        while name_of(server) not in {node["name"] for node in next_with("nodes")}:
            pass
        command.send(signal.SIGINT)

        assert command.ended() == (0, "")


def test_terminal_shows_one_look_in_place_of_the_other(
    servers: list[Server], options: dict[str, Any], tmp_path: Path
) -> None:
    with Terminal(tmp_path, options, "top", "--interval", "0.5", columns=60, lines=6) as command:
        first, second = command.screen(), command.screen()
        command.send(signal.SIGINT)

        assert command.ended() == (0, "")

    for screen in (first, second):
        assert screen[0].startswith("2 nodes, ")
        assert len(screen) == 5, "the last line is free, so that nothing scrolls"
        assert max(map(len, screen)) <= 60
        assert not any("\x1b" in line for line in screen)


def test_without_redis_it_says_why_it_cannot_look(tmp_path: Path) -> None:
    alone = run_here({}, *ONCE)
    away = run(tmp_path, {"redis_url": "redis://127.0.0.1:1"}, *ONCE, "--json")
    assert (alone.returncode, away.returncode) == (1, 1)
    assert "Only processes that share a Redis or PostgreSQL can see" in alone.stderr
    assert json.loads(away.stdout)["error"]["message"].startswith("Redis is not available: ")


@pytest.mark.parametrize(
    "arguments", [("--interval", "0.1"), ("--interval", "nan"), ("--limit", "0"), ("--sort", "x")]
)
def test_arguments_out_of_bounds_are_refused(arguments: tuple[str, ...]) -> None:
    finished = run_here({}, "top", *arguments)
    assert finished.returncode == 2
    assert f"argument {arguments[0]}" in finished.stderr
