"""The Lua scripts, with the types of their replies.

The head of each says what it does, why in one step, and what it returns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from realtime.redis.commands import Script

_DIRECTORY = Path(__file__).parent / "lua"

Entry: TypeAlias = tuple[bytes, list[bytes]]
"""An entry of a stream: its ID, and its fields with their values."""

ReadReply: TypeAlias = tuple[int, bytes, list[Entry], bytes]
"""Offset, epoch, entries, and the UID of the publication at the top."""

Appended: TypeAlias = tuple[int, bytes, int]
"""Offset, epoch, and 1 where nothing was published; reason and entry after that in maps."""


def sharded(script: Script[Appended]) -> Script[Appended]:
    """Return a script that sends by sharded pub/sub, as a Redis Cluster has it."""
    return Script.of(script.name, script.text.replace("'PUBLISH'", "'SPUBLISH'"))


APPEND: Script[Appended] = Script.load(_DIRECTORY / "append.lua")
PUT: Script[Appended] = Script.of("put", APPEND.text.replace("--[=[map", "--"))
"""`append.lua` with its blocks for maps."""
SEND_ONCE: Script[Appended] = Script.load(_DIRECTORY / "send_once.lua")
SEAL: Script[int] = Script.load(_DIRECTORY / "seal.lua")
READ: Script[ReadReply] = Script.load(_DIRECTORY / "read.lua")
PAGE: Script[tuple[int, bytes, int, list[bytes], list[bytes], int]] = Script.of(
    "page", f"local function read()\n{READ.text}\nend\n{(_DIRECTORY / 'page.lua').read_text()}"
)
DUE: Script[list[bytes]] = Script.load(_DIRECTORY / "due.lua")
RENEW_EPOCH: Script[int] = Script.load(_DIRECTORY / "renew_epoch.lua")
ADD_PRESENCE: Script[None] = Script.load(_DIRECTORY / "add_presence.lua")
REMOVE_PRESENCE: Script[None] = Script.load(_DIRECTORY / "remove_presence.lua")
PRESENCE: Script[list[bytes]] = Script.load(_DIRECTORY / "presence.lua")
LIST_NAMES: Script[tuple[list[bytes], list[bytes]] | None] = Script.load(
    _DIRECTORY / "list_names.lua"
)
RENEW_LISTS: Script[int] = Script.load(_DIRECTORY / "renew_lists.lua")
SWEEP: Script[list[bytes] | None] = Script.load(_DIRECTORY / "sweep.lua")
FORGET_SEEN: Script[None] = Script.load(_DIRECTORY / "forget_seen.lua")
NODES_SEEN: Script[list[Any]] = Script.load(_DIRECTORY / "nodes_seen.lua")
OPEN_SURVEY: Script[None] = Script.load(_DIRECTORY / "open_survey.lua")
BLOCK: Script[tuple[int, bytes]] = Script.load(_DIRECTORY / "block.lua")
BLOCKED: Script[list[bytes]] = Script.load(_DIRECTORY / "blocked.lua")
ADD_DEBTS: Script[list[int]] = Script.load(_DIRECTORY / "add_debts.lua")
PLACE_CONNECTIONS: Script[list[int]] = Script.load(_DIRECTORY / "place_connections.lua")
CLAIM: Script[bytes] = Script.load(_DIRECTORY / "claim.lua")
