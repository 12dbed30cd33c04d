"""The data of a Redis, its commands, and its scripts: a model that runs in the simulation's time.

It knows the commands that the service uses, with the replies of Redis, and runs the Lua scripts as
they are. What it does not know raises `UnknownCommand`, which no simulation survives. The contract
suite of the engine and `test_redis_database` hold it to the real server.

A value is never changed in place once `changes` has returned it: replicas and snapshots keep it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tests.simulation.redis_scripts import Script, compiled
from tests.simulation.redis_values import (
    FREES,
    NO_ID,
    OK,
    WRITES,
    WRONG_TYPE,
    Entries,
    Hash,
    Members,
    RedisError,
    Reply,
    SortedSet,
    Status,
    Stream,
    UnknownCommand,
    Value,
    bound,
    copied,
    entry_id_of,
    flags,
    integer,
    number,
    part,
    score_of,
    with_scores,
    within,
)


class Database:
    """The keys of one server, and what it knows of scripts and replication."""

    def __init__(self, clock: Callable[[], float], random_bytes: Callable[[int], bytes]) -> None:
        """
        Args:
            clock: returns Unix seconds.
            random_bytes: makes replication IDs.
        """
        self._clock = clock
        self._random_bytes = random_bytes
        self.values: dict[bytes, Value] = {}
        self.expiries: dict[bytes, int] = {}
        """Unix milliseconds, by key."""
        self.role = "master"
        self.replid = random_bytes(20).hex()
        self.replid2 = NO_ID
        self.publish: Callable[[bytes, bytes], int] = lambda channel, data: 0
        self._changed: dict[bytes, None] = {}
        self._scripts: dict[str, Script] = {}
        self._in_script = False
        self._refusals = 0
        self._has_written = False
        """Whether the script has: then it may go on."""
        self.refusal = ""
        """What it answers to whoever writes, where it cannot: it is full, or its disk is."""

    # life

    def begin_run(self) -> None:
        """Take a new replication ID, as a server does that starts."""
        self.replid, self.replid2 = self._random_bytes(20).hex(), NO_ID
        self._scripts.clear()

    def become_replica(self, master: Database) -> None:
        """Drop everything, and take over what a master has."""
        self.role = "slave"
        self.clear()
        self.apply(master.snapshot())
        self.replid, self.replid2 = master.replid, master.replid2
        self._scripts.clear()

    def forget_scripts(self) -> None:
        """Know no script any more, as after SCRIPT FLUSH."""
        self._scripts.clear()

    def promote(self) -> None:
        """Become a master: the ID of the old one is remembered."""
        self.role = "master"
        self.replid2, self.replid = self.replid, self._random_bytes(20).hex()

    def changes(self) -> dict[bytes, tuple[Value, int | None]]:
        """Return the keys that changed since the last call; None for those that are gone."""
        changed, self._changed = self._changed, {}
        return {
            key: (copied(self.values[key]) if key in self.values else None, self.expiries.get(key))
            for key in changed
        }

    def snapshot(self) -> dict[bytes, tuple[Value, int | None]]:
        """Return all keys, as `changes` does."""
        return {key: (copied(value), self.expiries.get(key)) for key, value in self.values.items()}

    def apply(self, changes: dict[bytes, tuple[Value, int | None]]) -> None:
        """Take over keys of a master, or of a snapshot."""
        for key, (value, expiry) in changes.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = copied(value)
            if value is None or expiry is None:
                self.expiries.pop(key, None)
            else:
                self.expiries[key] = expiry

    def clear(self) -> None:
        """Lose every key."""
        self.values.clear()
        self.expiries.clear()
        self._changed.clear()

    # commands

    def execute(self, command: Sequence[bytes]) -> Reply:
        """Run a command and return its reply.

        Raises:
            RedisError: the reply is an error.
            UnknownCommand: the model lacks the command.
        """
        name, method = _names(command[0])
        run = getattr(self, method, None)
        if run is None:
            raise UnknownCommand(f"{name} {command[1:]!r}")
        if name in WRITES and not self._in_script:
            if self.role != "master":
                raise RedisError("READONLY You can't write against a read only replica.")
            if self.refusal and name not in FREES:
                self._refuse()
        return run(*command[1:])

    def refuse(self, error: str, writes: int) -> None:
        """Refuse so many of the next writes with an error; -1: all of them."""
        self.refusal, self._refusals = error, writes

    def _refuse(self) -> None:
        error = self.refusal
        self._refusals -= 1
        if not self._refusals:
            self.refusal = ""
        raise RedisError(error)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _get(self, key: bytes, kind: type[Any]) -> Any:
        value = self._value(key)
        if value is not None and not isinstance(value, kind):
            raise RedisError(WRONG_TYPE)
        return value

    def _value(self, key: bytes) -> Value:
        expiry = self.expiries.get(key)
        if expiry is not None and expiry <= self._now_ms():
            if self.role == "master":
                self._drop(key)
            return None
        return self.values.get(key)

    def peek(self, key: bytes) -> Value:
        """Return the value of a key as a command finds it; None without one. Nothing changes."""
        expiry = self.expiries.get(key)
        return None if expiry is not None and expiry <= self._now_ms() else self.values.get(key)

    def _make(self, key: bytes, kind: type[Any]) -> Any:
        value = self._get(key, kind)
        if value is None:
            value = self.values[key] = kind()
        self._changed[key] = None
        return value

    def _drop(self, key: bytes) -> bool:
        self.expiries.pop(key, None)
        self._changed[key] = None
        return self.values.pop(key, None) is not None

    def _drop_empty(self, key: bytes, value: Any) -> None:
        if not value:
            self._drop(key)

    # keys

    def _do_ping(self) -> Reply:
        return Status("PONG")

    def _do_del(self, *keys: bytes) -> int:
        return sum(self._value(key) is not None and self._drop(key) for key in keys)

    def _do_exists(self, *keys: bytes) -> int:
        return sum(self._value(key) is not None for key in keys)

    def _expire_at(self, key: bytes, at: int) -> int:
        if self._value(key) is None:
            return 0
        self._changed[key] = None
        self.expiries[key] = at
        if at <= self._now_ms():
            self._drop(key)
        return 1

    def _do_expire(self, key: bytes, seconds: bytes) -> int:
        return self._expire_at(key, self._now_ms() + 1000 * integer(seconds))

    def _do_pexpire(self, key: bytes, milliseconds: bytes) -> int:
        return self._expire_at(key, self._now_ms() + integer(milliseconds))

    def _do_pexpireat(self, key: bytes, at: bytes) -> int:
        return self._expire_at(key, integer(at))

    def _do_persist(self, key: bytes) -> int:
        if self._value(key) is None or self.expiries.pop(key, None) is None:
            return 0
        self._changed[key] = None
        return 1

    def _do_pttl(self, key: bytes) -> int:
        if self._value(key) is None:
            return -2
        expiry = self.expiries.get(key)
        return -1 if expiry is None else expiry - self._now_ms()

    def _do_ttl(self, key: bytes) -> int:
        left = self._do_pttl(key)
        return left if left < 0 else (left + 500) // 1000

    def _do_type(self, key: bytes) -> Status:
        value = self._value(key)
        return Status("none" if value is None else _TYPES[type(value)])

    def _do_scan(self, cursor: bytes, *options: bytes) -> Reply:
        if options and options[0].upper() == b"MATCH":
            prefix = options[1].rstrip(b"*")
            if b"*" in prefix:
                raise UnknownCommand(f"SCAN {options!r}")
        else:
            prefix = b""
        return [b"0", [key for key in list(self.values) if key.startswith(prefix)]]

    def _do_keys(self, pattern: bytes) -> Reply:
        return self._do_scan(b"0", b"MATCH", pattern)[1]

    def _do_flushall(self) -> Status:
        for key in list(self.values):
            self._drop(key)
        return OK

    # strings

    def _do_get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._get(key, bytes)
        return value

    def _do_set(self, key: bytes, value: bytes, *options: bytes) -> Reply:
        expiry = None
        rest = [option.upper() for option in options]
        only_new = b"NX" in rest
        returns_old = b"GET" in rest
        for unit, factor in ((b"EX", 1000), (b"PX", 1)):
            if unit in rest:
                expiry = self._now_ms() + factor * integer(rest.pop(rest.index(unit) + 1))
                rest.remove(unit)
        if set(rest) - {b"NX", b"GET"}:
            raise UnknownCommand(f"SET {options!r}")
        old = self._value(key)
        if only_new and old is not None:
            return old if returns_old else None
        self.values[key] = value
        self._changed[key] = None
        if expiry is None:
            self.expiries.pop(key, None)
        else:
            self.expiries[key] = expiry
        return old if returns_old else OK

    def _do_incr(self, key: bytes) -> int:
        number = integer(self._get(key, bytes) or b"0") + 1
        self.values[key] = b"%d" % number
        self._changed[key] = None
        return number

    # hashes

    def _do_hget(self, key: bytes, field: bytes) -> bytes | None:
        return (self._get(key, Hash) or {}).get(field)

    def _do_hmget(self, key: bytes, *fields: bytes) -> list[bytes | None]:
        found = self._get(key, Hash) or {}
        return [found.get(field) for field in fields]

    def _do_hgetall(self, key: bytes) -> list[bytes]:
        return [part for pair in (self._get(key, Hash) or {}).items() for part in pair]

    def _do_hexists(self, key: bytes, field: bytes) -> int:
        return int(field in (self._get(key, Hash) or {}))

    def _do_hlen(self, key: bytes) -> int:
        return len(self._get(key, Hash) or ())

    def _do_hset(self, key: bytes, *pairs: bytes) -> int:
        found = self._make(key, Hash)
        before = len(found)
        found.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(found) - before

    def _do_hdel(self, key: bytes, *fields: bytes) -> int:
        if self._get(key, Hash) is None:
            return 0
        found = self._make(key, Hash)
        gone = sum(found.pop(field, None) is not None for field in fields)
        self._drop_empty(key, found)
        return gone

    def _do_hincrby(self, key: bytes, field: bytes, by: bytes) -> int:
        found = self._make(key, Hash)
        number = integer(found.get(field, b"0")) + integer(by)
        found[field] = b"%d" % number
        return number

    def _do_hscan(self, key: bytes, cursor: bytes, *options: bytes) -> Reply:
        return [b"0", self._do_hgetall(key)]

    # sets

    def _do_sadd(self, key: bytes, *members: bytes) -> int:
        found = self._make(key, Members)
        before = len(found)
        found.update(dict.fromkeys(members))
        return len(found) - before

    def _do_srem(self, key: bytes, *members: bytes) -> int:
        if self._get(key, Members) is None:
            return 0
        found = self._make(key, Members)
        before = len(found)
        for member in members:
            found.pop(member, None)
        gone = before - len(found)
        self._drop_empty(key, found)
        return gone

    def _do_scard(self, key: bytes) -> int:
        return len(self._get(key, Members) or ())

    def _do_smembers(self, key: bytes) -> list[bytes]:
        return list(self._get(key, Members) or ())

    def _do_sismember(self, key: bytes, member: bytes) -> int:
        return int(member in (self._get(key, Members) or ()))

    def _do_smismember(self, key: bytes, *members: bytes) -> list[int]:
        found = self._get(key, Members) or ()
        return [int(member in found) for member in members]

    def _do_sunion(self, *keys: bytes) -> list[bytes]:
        union: dict[bytes, None] = {}
        for key in keys:
            union.update(dict.fromkeys(self._get(key, Members) or ()))
        return list(union)

    def _do_sscan(self, key: bytes, cursor: bytes, *options: bytes) -> Reply:
        return [b"0", self._do_smembers(key)]

    def _do_spop(self, key: bytes, count: bytes) -> list[bytes]:
        popped = self._do_smembers(key)[: integer(count)]
        self._do_srem(key, *popped)
        return popped

    # lists

    def _do_rpush(self, key: bytes, *values: bytes) -> int:
        found = self._make(key, Entries)
        found.extend(values)
        return len(found)

    def _do_rpushx(self, key: bytes, *values: bytes) -> int:
        return 0 if self._get(key, Entries) is None else self._do_rpush(key, *values)

    def _do_lrange(self, key: bytes, first: bytes, last: bytes) -> list[bytes]:
        return part(self._get(key, Entries) or [], first, last)

    def _do_llen(self, key: bytes) -> int:
        return len(self._get(key, Entries) or ())

    # sorted sets

    def _do_zadd(self, key: bytes, *rest: bytes) -> int:
        options, pairs = flags(rest, (b"NX", b"XX", b"GT", b"LT", b"CH"))
        if options - {b"NX", b"XX", b"GT", b"LT"}:
            raise UnknownCommand(f"ZADD {rest!r}")
        found = self._make(key, SortedSet)
        added = 0
        for score, member in zip(pairs[::2], pairs[1::2], strict=True):
            old, new = found.get(member), score_of(score)
            if (old is None and b"XX" in options) or (old is not None and b"NX" in options):
                continue
            if old is not None and (
                (b"GT" in options and new <= old) or (b"LT" in options and new >= old)
            ):
                continue
            added += old is None
            found[member] = new
        self._drop_empty(key, found)
        return added

    def _do_zrem(self, key: bytes, *members: bytes) -> int:
        if self._get(key, SortedSet) is None:
            return 0
        found = self._make(key, SortedSet)
        gone = sum(found.pop(member, None) is not None for member in members)
        self._drop_empty(key, found)
        return gone

    def _do_zscore(self, key: bytes, member: bytes) -> bytes | None:
        score = (self._get(key, SortedSet) or {}).get(member)
        return None if score is None else number(score)

    def _do_zcard(self, key: bytes) -> int:
        return len(self._get(key, SortedSet) or ())

    def _do_zincrby(self, key: bytes, by: bytes, member: bytes) -> bytes:
        found = self._make(key, SortedSet)
        found[member] = found.get(member, 0.0) + score_of(by)
        return number(found[member])

    def _ordered(self, key: bytes) -> list[tuple[float, bytes]]:
        return (self._get(key, SortedSet) or SortedSet()).ordered()

    def _do_zrange(self, key: bytes, first: bytes, last: bytes, *options: bytes) -> list[bytes]:
        if options and options[0].upper() == b"BYSCORE":
            return self._do_zrangebyscore(key, first, last, *options[1:])
        return with_scores(part(self._ordered(key), first, last), options)

    def _do_zrevrange(self, key: bytes, first: bytes, last: bytes, *options: bytes) -> list[bytes]:
        return with_scores(part(self._ordered(key)[::-1], first, last), options)

    def _between(self, key: bytes, low: bytes, high: bytes) -> list[tuple[float, bytes]]:
        above, below = bound(low, lower=True), bound(high, lower=False)
        return [pair for pair in self._ordered(key) if above(pair[0]) and below(pair[0])]

    def _do_zrangebyscore(
        self, key: bytes, low: bytes, high: bytes, *options: bytes
    ) -> list[bytes]:
        found, rest = self._between(key, low, high), list(options)
        if rest and rest[0].upper() == b"LIMIT":
            start, count = integer(rest[1]), integer(rest[2])
            found = found[start:] if count < 0 else found[start : start + count]
            rest = rest[3:]
        return with_scores(found, rest)

    def _do_zrangebylex(
        self, key: bytes, least: bytes, greatest: bytes, *options: bytes
    ) -> list[bytes]:
        found = [member for _, member in self._ordered(key) if within(member, least, greatest)]
        if options:
            word, start, count = options
            if word.upper() != b"LIMIT":
                raise UnknownCommand(f"ZRANGEBYLEX {options!r}")
            found = found[integer(start) :][: integer(count)]
        return found

    def _do_zcount(self, key: bytes, low: bytes, high: bytes) -> int:
        return len(self._between(key, low, high))

    def _do_zremrangebyscore(self, key: bytes, low: bytes, high: bytes) -> int:
        return self._do_zrem(key, *(member for _, member in self._between(key, low, high)))

    def _do_zremrangebyrank(self, key: bytes, first: bytes, last: bytes) -> int:
        return self._do_zrem(key, *(m for _, m in part(self._ordered(key), first, last)))

    # streams

    def _do_xadd(self, key: bytes, *rest: bytes) -> bytes:
        if len(rest) < 5 or rest[0].upper() != b"MAXLEN":
            raise UnknownCommand(f"XADD {rest!r}")
        limit, entry_id = integer(rest[1]), entry_id_of(rest[2], 0)
        stream = self._get(key, Stream)
        if entry_id <= (stream.last if stream is not None else (0, 0)):
            raise RedisError(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            )
        stream = self._make(key, Stream)
        stream.append((entry_id, list(rest[3:])))
        stream.last = entry_id
        if len(stream) > limit:
            del stream[: len(stream) - limit]
        return rest[2]

    def _do_xrange(self, key: bytes, first: bytes, last: bytes, *options: bytes) -> Reply:
        return self._entries(key, first, last, options, reverse=False)

    def _do_xrevrange(self, key: bytes, last: bytes, first: bytes, *options: bytes) -> Reply:
        return self._entries(key, first, last, options, reverse=True)

    def _entries(
        self, key: bytes, first: bytes, last: bytes, options: Sequence[bytes], reverse: bool
    ) -> Reply:
        low = (0, 0) if first == b"-" else entry_id_of(first, 0)
        high = None if last == b"+" else entry_id_of(last, 2**64 - 1)
        found = [
            entry
            for entry in self._get(key, Stream) or ()
            if entry[0] >= low and (high is None or entry[0] <= high)
        ]
        if reverse:
            found.reverse()
        if options:
            found = found[: integer(options[1])]
        return [[b"%d-%d" % entry_id, list(fields)] for entry_id, fields in found]

    def _do_xlen(self, key: bytes) -> int:
        return len(self._get(key, Stream) or ())

    # the server

    def _do_time(self) -> list[bytes]:
        now = self._clock()
        seconds = int(now)
        return [b"%d" % seconds, b"%d" % int((now - seconds) * 1_000_000)]

    def _do_info(self, *sections: bytes) -> bytes:
        return (
            f"# Replication\r\nrole:{self.role}\r\nconnected_slaves:0\r\n"
            f"master_replid:{self.replid}\r\nmaster_replid2:{self.replid2}\r\n"
        ).encode()

    def _do_publish(self, channel: bytes, data: bytes) -> int:
        return self.publish(channel, data)

    _do_spublish = _do_publish

    # scripts

    def _do_script(self, word: bytes, *arguments: bytes) -> Reply:
        if word.upper() != b"FLUSH":
            raise UnknownCommand(f"SCRIPT {word!r}")
        self._scripts.clear()
        return OK

    def _do_eval(self, text: bytes, number: bytes, *rest: bytes) -> Reply:
        sha = hashlib.sha1(text, usedforsecurity=False).hexdigest()
        self._scripts[sha] = compiled(text)
        return self._run(sha, number, rest)

    def _do_evalsha(self, sha: bytes, number: bytes, *rest: bytes) -> Reply:
        if sha.decode() not in self._scripts:
            raise RedisError("NOSCRIPT No matching script. Please use EVAL.")
        return self._run(sha.decode(), number, rest)

    def _run(self, sha: str, number: bytes, rest: Sequence[bytes]) -> Reply:
        count = integer(number)
        compiled, self._in_script = self._scripts[sha], True
        self._has_written = False
        try:
            return compiled(rest[:count], rest[count:], self._called)
        finally:
            self._in_script = False

    def _called(self, command: Sequence[bytes]) -> Reply:
        name, _ = _names(command[0])
        if name in WRITES:
            if self.role != "master":
                raise RedisError(
                    "ERR Error running script: -READONLY You can't write against a read only"
                    " replica."
                )
            if self.refusal and not self._has_written and name not in FREES:
                self._refuse()
            self._has_written = True
        return self.execute(command)


@cache
def _names(command: bytes) -> tuple[str, str]:
    """Return the name of a command, and that of its method."""
    name = command.decode()
    return name.upper(), f"_do_{name.lower()}"


_TYPES: dict[type[Any], str] = {
    bytes: "string",
    Hash: "hash",
    Members: "set",
    Entries: "list",
    SortedSet: "zset",
    Stream: "stream",
}
