"""The model of Redis answers as the real server does: the same commands, in the same order."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import redis

from realtime.engine.redis import scripts
from realtime.redis.commands import Script
from tests.redis_server import RedisServer
from tests.simulation.redis_database import Database
from tests.simulation.redis_values import RedisError, Status

ROUNDS = 400
KEYS = [b"a", b"b", b"c"]
WORDS = [b"one", b"two", b"three", b"4"]


@pytest.fixture
def database() -> Database:
    return Database(time.time, random.randbytes)


class Commands:
    """Draws commands, each of which a type of value has; keys are of one type each."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._top = 0

    def draw(self) -> list[bytes]:
        """Return a command."""
        chance = self._random
        word, other = chance.choice(WORDS), chance.choice(WORDS)
        number = b"%d" % chance.randrange(-3, 4)
        last = b"%d" % chance.randrange(-3, 4)
        key = chance.choice(KEYS)
        self._top += 1
        kinds: Sequence[tuple[bytes, Sequence[Sequence[bytes]]]] = [
            (
                b"string:",
                [[b"SET", word], [b"SET", word, b"NX"], [b"GET"], [b"SET", other, b"EX", b"99"]],
            ),
            (
                b"hash:",
                [
                    [b"HSET", word, other],
                    [b"HDEL", word],
                    [b"HGET", word],
                    [b"HMGET", word, other],
                    [b"HLEN"],
                    [b"HEXISTS", other],
                    [b"HINCRBY", b"n", number],
                ],
            ),
            (
                b"set:",
                [
                    [b"SADD", word, other],
                    [b"SREM", word],
                    [b"SCARD"],
                    [b"SISMEMBER", word],
                    [b"SMISMEMBER", word, other],
                ],
            ),
            (
                b"list:",
                [[b"RPUSH", word, other], [b"RPUSHX", word], [b"LRANGE", number, last], [b"LLEN"]],
            ),
            (
                b"zset:",
                [
                    [b"ZADD", number, word],
                    [b"ZADD", b"XX", number, word],
                    [b"ZADD", b"GT", number, other],
                    [b"ZADD", b"NX", number, other],
                    [b"ZREM", word],
                    [b"ZSCORE", word],
                    [b"ZCARD"],
                    [b"ZINCRBY", number, word],
                    [b"ZRANGE", number, last, b"WITHSCORES"],
                    [b"ZREVRANGE", number, last],
                    [b"ZRANGEBYSCORE", b"(" + number, b"+inf", b"LIMIT", b"0", b"2"],
                    [b"ZCOUNT", b"-inf", last],
                    [b"ZREMRANGEBYSCORE", number, b"(" + last],
                    [b"ZREMRANGEBYRANK", number, last],
                ],
            ),
            (
                b"names:",
                [
                    [b"ZADD", b"0", word],
                    [b"ZREM", word],
                    [b"ZRANGEBYLEX", b"-", b"+", b"LIMIT", b"1", b"2"],
                    [b"ZRANGEBYLEX", b"(" + word, b"[" + other],
                    [b"ZRANGEBYLEX", b"[" + word, b"(" + other],
                ],
            ),
            (
                b"stream:",
                [
                    [b"XADD", b"MAXLEN", b"3", b"%d-1" % self._top, b"m", word],
                    [b"XADD", b"MAXLEN", b"3", b"1-1", b"m", word],
                    [b"XRANGE", b"-", b"+"],
                    [b"XRANGE", b"%d" % max(self._top - 90, 0), b"+", b"COUNT", b"2"],
                    [b"XREVRANGE", b"+", b"-", b"COUNT", b"1"],
                    [b"XLEN"],
                ],
            ),
        ]
        prefix, commands = chance.choice(kinds)
        shared = [[b"DEL"], [b"EXISTS"], [b"TTL"], [b"PERSIST"], [b"TYPE"], [b"PEXPIRE", b"90000"]]
        name, *rest = chance.choice([*commands, *commands, *shared])
        return [name, prefix + key, *rest]


def answer(run: Callable[[], Any]) -> Any:
    """Return a reply in one form; of an error only its first word."""
    try:
        reply = run()
    except (RedisError, redis.ResponseError) as error:
        return "error", str(error).split()[0].replace("The", "ERR")
    return reply.encode() if isinstance(reply, Status) else reply


@pytest.mark.parametrize("seed", range(4))
def test_commands(database: Database, redis_server: RedisServer, unique: str, seed: int) -> None:
    commands = Commands(seed)
    prefix = unique.encode()
    connection = redis.Connection(port=redis_server.port, protocol=2)
    for _ in range(ROUNDS):
        name, key, *rest = commands.draw()
        command = [name, prefix + key, *rest]
        connection.send_command(*command)
        real = answer(connection.read_response)
        assert answer(partial(database.execute, command)) == real, command
    connection.disconnect()


def arguments_of(draw: random.Random, prefix: str) -> tuple[Script[Any], list[str], list[str]]:
    """Draw a call of a script that publishes or reads."""
    keys = [f"{prefix}:{name}" for name in ("stream", "meta", "epoch")]
    if draw.random() < 0.4:
        first = draw.choice(["", "-", "+", "2"])
        limit, back = draw.choice(["", "2"]), str(int(first == "+"))
        return (
            scripts.READ,
            keys,
            [first, draw.choice(["0", "500"]), "e", "0", limit, back, "", "9"],
        )
    published = ["m", "3", "600", draw.choice(["0", "1300"]), "f", "0", "", f"uid{draw.random()}"]
    match draw.randrange(4):
        case 0:
            keys.append(f"{prefix}:once:{draw.randrange(3)}")
            published.append("600")
        case 1:
            published += ["0", str(draw.randrange(12)), draw.choice(["", "v"])]
        case 2:
            published += ["0", "", "", str(draw.randrange(6)), ""]
    return scripts.APPEND, keys, published


@pytest.mark.parametrize("seed", range(4))
def test_scripts(database: Database, redis_server: RedisServer, unique: str, seed: int) -> None:
    draw = random.Random(seed)
    with redis_server.client() as client:
        for _ in range(ROUNDS // 4):
            script, keys, arguments = arguments_of(draw, unique)
            command = [
                part.encode()
                for part in ("EVAL", script.text, str(len(keys)), *keys, *map(str, arguments))
            ]
            real = client.eval(script.text, len(keys), *keys, *arguments)
            assert timeless(database.execute(command)) == timeless(real), (keys, arguments)


def timeless(reply: Any) -> Any:
    """Return a reply of a script without the times in the IDs of entries."""
    if isinstance(reply, list):
        return [timeless(part) for part in reply]
    return re.sub(rb"^(\d+)-\d+$", rb"\1", reply) if isinstance(reply, bytes) else reply
