"""Lua scripts of the model of Redis, which run as they are.

All share one interpreter. A script gets its keys, its arguments and `redis` as parameters, so it
has no globals of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lupa.lua51 as lupa
import msgpack

from tests.simulation.redis_values import RedisError, Reply, Status


class Script:
    """A compiled script: called with keys, arguments, and what runs its commands."""

    _lua: Any = None
    """The interpreter of all scripts; they have no globals of their own."""

    def __init__(self, text: bytes) -> None:
        if Script._lua is None:
            Script._lua = lupa.LuaRuntime(encoding=None)  # type: ignore[call-arg]  # a stub
            Script._table = Script._lua.eval(_REDIS_TABLE)(
                Script._from_lua, Script._pack, Script._unpack
            )
        function = Script._lua.eval(b"function(KEYS, ARGV, redis, cmsgpack) " + text + b"\nend")
        self._function = function

    _table: Any = None
    _caller: Callable[[Sequence[bytes]], Reply]

    def __call__(
        self,
        keys: Sequence[bytes],
        arguments: Sequence[bytes],
        run: Callable[[Sequence[bytes]], Reply],
    ) -> Reply:
        table = Script._lua.table_from
        Script._caller = staticmethod(run)
        try:
            result = self._function(
                table(keys), table(arguments), Script._table[b"redis"], Script._table[b"cmsgpack"]
            )
        finally:
            del Script._caller  # it holds the whole world
        return _to_reply(result)

    @staticmethod
    def _from_lua(*command: Any) -> Any:
        reply = Script._caller(
            [part if type(part) is bytes else _argument(part) for part in command]
        )
        if type(reply) is bytes or type(reply) is int:
            return reply
        return _to_lua(Script._lua, reply)

    @staticmethod
    def _pack(value: Any) -> bytes:
        packed: bytes = msgpack.packb(_plain(value))
        return packed

    @staticmethod
    def _unpack(data: bytes) -> Any:
        return _to_lua(Script._lua, msgpack.unpackb(data, raw=True))


_REDIS_TABLE = b"""
function(call, pack, unpack)
  return {
    redis = {
      call = call,
      error_reply = function(text) return {err = text} end,
      status_reply = function(text) return {ok = text} end,
    },
    cmsgpack = {pack = pack, unpack = unpack},
  }
end
"""

_scripts: dict[bytes, Script] = {}


def compiled(text: bytes) -> Script:
    script = _scripts.get(text)
    if script is None:
        script = _scripts[text] = Script(text)
    return script


def _argument(part: int | float) -> bytes:
    return b"%d" % part if part == int(part) else repr(part).encode()


def _to_lua(lua: Any, reply: Reply) -> Any:
    if reply is None:
        return False
    if isinstance(reply, Status):
        return lua.table_from({b"ok": reply.encode()})
    if isinstance(reply, list):
        return lua.table_from([i if type(i) is bytes else _to_lua(lua, i) for i in reply])
    return reply


def _plain(value: Any) -> Any:
    if lupa.lua_type(value) == "table":
        length = len(value)
        return [_plain(value[index]) for index in range(1, length + 1)]
    return int(value) if isinstance(value, float) and value == int(value) else value


def _to_reply(value: Any) -> Reply:
    if type(value) is bytes:
        return value
    if value is None or value is False:
        return None
    if value is True:
        return 1
    if isinstance(value, int | float):
        return int(value)
    if lupa.lua_type(value) != "table":
        return value
    length = len(value)
    if not length:  # most tables are arrays
        if (error := value[b"err"]) is not None:
            raise RedisError(error.decode())
        if (status := value[b"ok"]) is not None:
            return Status(status.decode())
    items = []
    for index in range(1, length + 1):
        item = value[index]
        if item is None:
            break
        items.append(item if type(item) is bytes else _to_reply(item))
    return items
