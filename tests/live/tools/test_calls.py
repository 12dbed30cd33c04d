"""The methods of the server API as sub-commands, over HTTP and through Redis.

The results are those of the server API: docs/protocol.md, 6.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError
from pytest_django import Settings

from tests.live.configurations import FORCED, Connect
from tests.live.tools.command import KEYS, call, run
from tests.live.tools.tools_parts import API_OPTIONS as OPTIONS
from tests.live.tools.tools_parts import Console
from tests.ports import refusing_port
from tests.server import Server

# what they do


async def test_published_data_reach_a_subscriber_as_they_were_written(
    console: Console, connect: Connect, unique: str, tmp_path: Path
) -> None:
    client = await connect(console.server)
    await client.result("subscribe", {"channel": unique})
    data = '{"text": "hi", "number": 12345678901234567890123}'

    finished = console.run_alone(tmp_path, "publish", unique, data)

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("Published. Offset 1, epoch ")
    push = await client.push()
    assert push["channel"] == unique
    assert push["data"]["data"] == {"text": "hi", "number": 12345678901234567890123}


async def test_broadcast_reaches_every_channel(
    console: Console, connect: Connect, unique: str
) -> None:
    client = await connect(console.server)
    for name in ("a", "b"):
        await client.result("subscribe", {"channel": f"{name}{unique}"})

    responses = console.json("broadcast", f"a{unique}", f"b{unique}", "[1]")["responses"]
    assert [response["result"]["offset"] for response in responses] == [1, 1]

    pushes = [await client.push() for _ in range(2)]
    assert [(push["channel"], push["data"]["data"]) for push in pushes] == [
        (f"a{unique}", [1]),
        (f"b{unique}", [1]),
    ]


def test_map_is_changed_and_shown(console: Console, unique: str, tmp_path: Path) -> None:
    seats = f"seats:{unique}"
    assert console.text("map_publish", seats, "a", "[1]").startswith("Changed. Offset 1, epoch ")
    console.text("map_publish", seats, "b\x1b", "2", "--ttl", "0", "--expect", "0")
    refused = console.run_alone(tmp_path, "map_publish", seats, "a", "3", "--key-mode", "if_new")
    assert (refused.returncode, refused.stderr) == (1, "CommandError: Not changed: key_exists.\n")

    assert [line.split()[:2] for line in console.text("map_read_state", seats).splitlines()] == [
        ["OFFSET", "KEY"],
        ["1", "a"],
        ["2", "b\\x1b"],
    ]
    page = console.text("map_read_state", seats, "--limit", "1")
    assert page.endswith("More keys: --cursor a")
    console.text("map_remove", seats, "a")
    assert console.text("history", seats).splitlines()[-1].split()[1::3] == ["a", "removed"]
    console.text("map_clear", seats)
    assert console.text("map_read_state", seats) == "No key."


async def test_blocked_user_is_closed_listed_and_let_in_again(
    console: Console, connect: Connect, unique: str
) -> None:
    client = await connect(console.server, user=unique)
    assert console.json("block", unique, "1000") == {}
    assert await client.closed() == FORCED
    blocked = [each["user"] for each in console.json("blocked")["users"]]
    assert console.json("unblock", unique) == {}
    assert unique in blocked
    assert unique not in str(console.json("blocked"))
    await connect(console.server, user=unique)


async def test_presence_and_its_numbers_are_shown(
    console: Console, connect: Connect, unique: str
) -> None:
    client = await connect(console.server, user=unique)
    await client.result("subscribe", {"channel": unique})

    assert console.json("presence", unique) == {
        "presence": {client.client: {"user": unique, "client": client.client}}
    }
    assert console.json("presence_stats", unique) == {"num_clients": 1, "num_users": 1}
    assert console.text("presence_stats", unique) == "1 client, 1 user"
    rows = console.text("presence", unique).splitlines()
    assert [row.split() for row in rows[1:]] == [[client.client, unique]]


async def test_channels_with_a_subscriber_are_listed(
    console: Console, connect: Connect, unique: str
) -> None:
    client = await connect(console.server)
    await client.result("subscribe", {"channel": unique})
    assert unique in console.json("channels")["channels"]
    assert unique in console.text("channels").splitlines()


def test_history_is_shown_and_removed(console: Console, unique: str) -> None:
    console.server.publish(unique, {"n": 1})
    console.server.publish(unique, {"n": 2})

    kept = console.json("history", unique)["publications"]
    rows = console.text("history", unique).splitlines()
    assert console.text("history_remove", unique) == "Removed."

    assert [publication["data"] for publication in kept] == [{"n": 1}, {"n": 2}]
    assert [row.split()[0] for row in rows[1:]] == ["1", "2"]
    assert [row.split()[-1] for row in rows[1:]] == [_compact(each) for each in kept]
    assert console.server.api("history", channel=unique) == {"result": {"publications": []}}
    assert console.text("history", unique).startswith(
        "No publication. The position of the channel: offset 2, epoch "
    )


def _compact(publication: dict[str, Any]) -> str:
    return json.dumps(publication["data"], separators=(",", ":"))


def test_info_lists_the_process_that_serves(console: Console) -> None:
    [node] = console.server.api("info")["result"]["nodes"]
    [listed] = console.json("info")["nodes"]
    [_, row] = console.text("info").splitlines()
    assert (listed["uid"], listed["name"]) == (node["uid"], node["name"])
    assert row.split()[:3] == [node["name"], node["uid"], node["version"]]


async def test_disconnect_closes_the_connections_of_a_user(
    console: Console, connect: Connect, unique: str
) -> None:
    client = await connect(console.server, user=unique)
    assert console.json("disconnect", unique) == {}
    assert await client.closed() == FORCED


@pytest.mark.parametrize("named", [True, False], ids=["one channel", "all channels"])
async def test_unsubscribe_ends_subscriptions_of_a_user(
    console: Console, connect: Connect, unique: str, named: bool
) -> None:
    client = await connect(console.server, user=unique)
    await client.result("subscribe", {"channel": unique})
    assert console.json("unsubscribe", unique, *([unique] if named else [])) == {}
    push = await client.push()
    assert (push["type"], push["channel"]) == (3, unique)


# what they say when it does not work


def test_error_of_the_service_is_said_with_its_code(console: Console, tmp_path: Path) -> None:
    finished = console.run_alone(tmp_path, "presence", "off:a", "--json")
    assert finished.returncode == 1
    assert json.loads(finished.stdout) == {"error": {"code": 108, "message": "not available"}}
    assert finished.stderr == "CommandError: The service answers 108: not available.\n"


def test_memory_engine_without_a_url_leads_to_the_url(tmp_path: Path) -> None:
    finished = run(tmp_path, {}, "publish", "a", "1", "--json")
    assert finished.returncode == 1
    assert "--url http://127.0.0.1:8000" in json.loads(finished.stdout)["error"]["message"]
    assert "--url http://127.0.0.1:8000" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_redis_that_is_away_is_said_without_its_password(tmp_path: Path) -> None:
    url = f"redis://:hidden@127.0.0.1:{refusing_port()}/0"
    finished = run(tmp_path, {"redis_url": url}, "info")
    assert finished.returncode == 1
    assert finished.stderr.startswith("CommandError: Redis is not available: redis://127.0.0.1:")
    assert "hidden" not in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("key", "message"),
    [("another", "status 401.*another api_key"), ("", "closed: set api_key")],
    ids=["wrong", "none"],
)
def test_key_that_does_not_fit_is_said(
    serve: Callable[..., Server], settings: Settings, key: str, message: str
) -> None:
    settings.REALTIME = {**KEYS, "api_key": key}
    with pytest.raises(CommandError, match=message):
        call("info", "--url", serve(**OPTIONS).address)


URLS = {
    "ftp://example.org": "such as https://example.org",
    "example.org": "such as https://example.org",
    "http://[": "not a URL",
    "http://user:hidden@example.org": "no user, no password",
    "http://nowhere.invalid": "there is no such host",
}


@pytest.mark.parametrize(("url", "message"), URLS.items(), ids=URLS)
def test_url_that_leads_nowhere_is_said(settings: Settings, url: str, message: str) -> None:
    settings.REALTIME = KEYS
    with pytest.raises(CommandError, match=message):
        call("info", "--url", url)


def test_certificate_that_nobody_knows_is_said(
    own_server: Callable[..., Server], settings: Settings
) -> None:
    settings.REALTIME = KEYS
    with pytest.raises(CommandError, match="its certificate is not accepted"):
        call("info", "--url", own_server(server="daphne-tls").address)


def test_urlconf_without_the_server_api_is_said(settings: Settings) -> None:
    settings.REALTIME = KEYS
    settings.ROOT_URLCONF = "tests.site.urls_without_api"
    with pytest.raises(CommandError, match=r"the URLconf has no server API\. Add path"):
        call("info", "--url", "http://127.0.0.1:9")


# what is published


@pytest.fixture
def server(serve: Callable[..., Server], settings: Settings) -> Server:
    """A service that this process is a site of."""
    settings.REALTIME = KEYS
    return serve(**OPTIONS)


def kept(server: Server, channel: str) -> list[Any]:
    """The data a channel keeps."""
    publications = server.api("history", channel=channel)["result"]["publications"]
    return [publication["data"] for publication in publications]


@pytest.mark.parametrize(
    ("data", "value"),
    [("null", None), ("-5", -5), (' {"a": [true]}\n', {"a": [True]}), ('"ä"', "ä")],
    ids=["null", "negative number", "white space around", "not ASCII"],
)
def test_any_json_value_is_published(server: Server, unique: str, data: str, value: object) -> None:
    call("publish", unique, data, "--url", server.address)
    assert kept(server, unique) == [value]


@pytest.mark.parametrize(
    ("arguments", "value"), [([], [1]), (["--text"], "[1]")], ids=["json", "text"]
)
def test_data_are_read_from_standard_input(
    server: Server, unique: str, tmp_path: Path, arguments: list[str], value: object
) -> None:
    words = ("publish", unique, "-", "--url", server.address, *arguments)
    finished = run(tmp_path, OPTIONS, *words, stdin="[1]\n")
    assert finished.returncode == 0, finished.stderr
    assert kept(server, unique) == [value]


@pytest.mark.parametrize("data", ["hello", "{'a': 1}", "", "[1] [2]", "NaN"])
def test_data_that_are_not_json_are_refused(server: Server, unique: str, data: str) -> None:
    with pytest.raises(CommandError, match=r"The data are not JSON.*--text"):
        call("publish", unique, data, "--url", server.address)
    assert kept(server, unique) == []


def test_names_that_others_chose_cannot_steer_the_terminal(server: Server, unique: str) -> None:
    call("publish", unique, "\x9b2J", "--text", "--url", server.address)
    printed = call("history", unique, "--url", server.address)
    assert "\\x9b2J" in printed
    assert "\x9b" not in printed
