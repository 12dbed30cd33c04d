"""The Lua scripts. Each says in its head what it does, and why in one step."""

from __future__ import annotations

from pathlib import Path

from realtime.redis.script import Script

_DIRECTORY = Path(__file__).parent / "lua"

APPEND = Script.load(_DIRECTORY / "append.lua")
READ = Script.load(_DIRECTORY / "read.lua")
RENEW_EPOCH = Script.load(_DIRECTORY / "renew_epoch.lua")
ADD_PRESENCE = Script.load(_DIRECTORY / "add_presence.lua")
REMOVE_PRESENCE = Script.load(_DIRECTORY / "remove_presence.lua")
PRESENCE = Script.load(_DIRECTORY / "presence.lua")
LIST_CHANNELS = Script.load(_DIRECTORY / "list_channels.lua")
NODES_SEEN = Script.load(_DIRECTORY / "nodes_seen.lua")
OPEN_SURVEY = Script.load(_DIRECTORY / "open_survey.lua")
CLAIM = Script.load(_DIRECTORY / "claim.lua")
