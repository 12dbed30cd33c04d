"""publish, broadcast and history as sub-commands: all that their methods can do."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from pytest_django import Settings

from tests.live.configurations import Connect
from tests.live.tools.command import KEYS, call
from tests.live.tools.tools_parts import Console


def test_publications_may_have_tags_keys_and_versions(console: Console, unique: str) -> None:
    tags = ["--tag", "team=red", "--tag", "formula=a=b"]
    first = console.json("publish", unique, "1", *tags, "--once", "k", "--version", "2")
    again = console.json("publish", unique, "2", "--once", "k")
    older = console.json("publish", unique, "3", "--version", "1", "--version-epoch", "")
    lone = console.json("publish", unique, "4", "--skip-history")
    responses = console.json("broadcast", unique, "5", "--tag", "team=blue")["responses"]

    assert first["offset"] == 1
    assert (again, older, lone) == (first, first, {})
    kept = console.json("history", unique)
    assert responses == [{"result": {"offset": kept["offset"], "epoch": kept["epoch"]}}]
    assert [(each["offset"], each["data"], each["tags"]) for each in kept["publications"]] == [
        (1, 1, {"team": "red", "formula": "a=b"}),
        (2, 5, {"team": "blue"}),
    ]
    heading, row, _ = console.text("history", unique).splitlines()
    assert heading.split() == ["OFFSET", "TIME", "USER", "TAGS", "DATA"]
    offset, day, hour, formula, team, data = row.split()
    assert (offset, formula, team, data) == ("1", "formula=a=b", "team=red", "1")
    shown = datetime.fromisoformat(f"{day} {hour}").timestamp() * 1000
    assert round(shown) == kept["publications"][0]["time"]


def test_publication_may_expect_a_position(console: Console, unique: str) -> None:
    first = console.json("publish", unique, "1", "--expect", "0")
    assert console.json("publish", unique, "2", "--expect", f"1:{first['epoch']}")["offset"] == 2
    with pytest.raises(AssertionError, match="Not published: the channel is at offset 2, epoch"):
        console.text("publish", unique, "3", "--expect", "1")
    with pytest.raises(AssertionError, match="Not published into 1 channel: another position"):
        console.text("broadcast", unique, "3", "--expect", "1")


async def test_history_names_who_published(console: Console, connect: Connect, unique: str) -> None:
    client = await connect(console.server, user=unique)
    await client.result("publish", {"channel": f"open:{unique}", "data": 1})
    row = console.text("history", f"open:{unique}").splitlines()[1]
    assert row.split()[3:] == [unique, "1"]


def test_a_part_of_history_is_shown(console: Console, unique: str) -> None:
    for number in range(1, 5):
        console.server.publish(unique, number)
    epoch = console.json("history", unique, "--limit", "0")["epoch"]

    def shown(*arguments: str) -> list[int]:
        return [
            each["data"] for each in console.json("history", unique, *arguments)["publications"]
        ]

    assert shown("--limit", "2") == [1, 2]
    assert shown("--since", "2") == [3, 4]
    assert shown("--since", f"3:{epoch}", "--reverse") == [2, 1]
    assert shown("--reverse", "--limit", "1") == [4]
    assert shown("--limit", "0") == []
    with pytest.raises(AssertionError, match="112: unrecoverable position"):
        console.text("history", unique, "--since", "1:other")


def test_broadcast_says_which_channels_are_refused(
    console: Console, unique: str, tmp_path: Path
) -> None:
    finished = console.run_alone(tmp_path, "broadcast", unique, "nope:a", "nope:b", "1")
    assert (finished.returncode, finished.stdout) == (1, "Published into 1 channel.\n")
    assert finished.stderr == "CommandError: 2 channels refused, 102: namespace not found.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["publish", "a", "1", "--tag", "team"], "NAME=VALUE"),
        (["publish", "a", "1", "--version-epoch", "b"], "needs --version"),
        (["publish", "a", "1", "--version", "0"], "invalid number"),
        (["history", "a", "--limit", "-1"], "invalid number"),
        (["history", "a", "--since", "b"], "invalid position"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_that_are_none_are_refused(
    settings: Settings, arguments: list[str], message: str
) -> None:
    settings.REALTIME = KEYS
    with pytest.raises(CommandError, match=message):
        call(*arguments, "--url", "http://127.0.0.1:9")
