"""Values of the model of Redis: their types, and how their arguments and replies are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


class RedisError(Exception):
    """An error reply; its text begins with the code."""


class UnknownCommand(Exception):
    """The model does not have the command, or not with these arguments."""


class Status(str):
    """A status reply, such as "OK"."""

    __slots__ = ()


OK = Status("OK")
NO_ID = "0" * 40

Reply = Any
Value = Any
"""bytes, `Hash`, `SortedSet`, `Members`, `Entries` or `Stream`."""


class Hash(dict[bytes, bytes]):
    """A hash."""


class SortedSet(dict[bytes, float]):
    """A sorted set: members and scores."""

    def ordered(self) -> list[tuple[float, bytes]]:
        return sorted((score, member) for member, score in self.items())


class Members(dict[bytes, None]):
    """A set, in the order in which members came."""


class Entries(list[bytes]):
    """A list."""


class Stream(list[tuple[tuple[int, int], list[bytes]]]):
    """A stream: IDs and fields, oldest first."""

    last: tuple[int, int] = (0, 0)
    """The last ID that it had."""

    def copied(self) -> Stream:
        copy = Stream(self)
        copy.last = self.last
        return copy


def copied(value: Value) -> Value:
    if isinstance(value, bytes):
        return value
    return value.copied() if isinstance(value, Stream) else type(value)(value)


WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_AN_INTEGER = "ERR value is not an integer or out of range"


def integer(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        raise RedisError(NOT_AN_INTEGER) from None


def score_of(text: bytes) -> float:
    return float(text)


def number(score: float) -> bytes:
    return b"%d" % score if score == int(score) else b"%.17g" % score


def entry_id_of(text: bytes, sequence: int) -> tuple[int, int]:
    first, hyphen, second = text.partition(b"-")
    return int(first), int(second) if hyphen else sequence


def part(items: list[Any], first: bytes, last: bytes) -> list[Any]:
    begin, end = integer(first), integer(last)
    begin = max(begin + len(items), 0) if begin < 0 else begin
    end = end + len(items) if end < 0 else end
    return items[begin : end + 1]


def with_scores(pairs: Iterable[tuple[float, bytes]], options: Sequence[bytes]) -> list[bytes]:
    if not options:
        return [member for _, member in pairs]
    if options[0].upper() != b"WITHSCORES":
        raise UnknownCommand(f"sorted set {options!r}")
    return [part for score, member in pairs for part in (member, number(score))]


def bound(text: bytes, *, lower: bool) -> Callable[[float], bool]:
    excluded = text.startswith(b"(")
    limit = float(text.removeprefix(b"("))
    if lower:
        return (lambda score: score > limit) if excluded else (lambda score: score >= limit)
    return (lambda score: score < limit) if excluded else (lambda score: score <= limit)


def within(member: bytes, least: bytes, greatest: bytes) -> bool:
    """Return whether a member is in a range of a sorted set whose scores are all the same."""
    above = least == b"-" or (member > least[1:] if least.startswith(b"(") else member >= least[1:])
    below = greatest == b"+" or (
        member < greatest[1:] if greatest.startswith(b"(") else member <= greatest[1:]
    )
    return above and below


def flags(rest: Sequence[bytes], known: Sequence[bytes]) -> tuple[set[bytes], Sequence[bytes]]:
    found: set[bytes] = set()
    while rest and rest[0].upper() in known:
        found.add(rest[0].upper())
        rest = rest[1:]
    return found, rest


WRITES = frozenset(
    [
        "DEL",
        "EXPIRE",
        "PEXPIRE",
        "PEXPIREAT",
        "PERSIST",
        "FLUSHALL",
        "SET",
        "INCR",
        "HSET",
        "HDEL",
        "HINCRBY",
        "SADD",
        "SREM",
        "SPOP",
        "RPUSH",
        "RPUSHX",
        "ZADD",
        "ZREM",
        "ZINCRBY",
        "ZREMRANGEBYSCORE",
        "ZREMRANGEBYRANK",
        "XADD",
    ]
)
"""Commands that write."""

FREES = frozenset(
    [
        "DEL",
        "EXPIRE",
        "PEXPIRE",
        "PEXPIREAT",
        "PERSIST",
        "HDEL",
        "SREM",
        "SPOP",
        "ZREM",
        "ZREMRANGEBYSCORE",
        "ZREMRANGEBYRANK",
    ]
)
"""Of those that write: what a full Redis lets pass."""


def encode(reply: Reply) -> bytes:
    """Return a reply as RESP2."""
    if isinstance(reply, bytes):
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    if isinstance(reply, list):
        return b"*%d\r\n%b" % (len(reply), b"".join(map(encode, reply)))
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if reply is None:
        return b"$-1\r\n"
    if isinstance(reply, Status):
        return b"+%b\r\n" % reply.encode()
    return b"-%b\r\n" % str(reply).encode()
