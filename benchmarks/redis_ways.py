"""Redis clients and the ways to use them, for `benchmarks.redis_clients`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import channels_redis.core
import channels_redis.pubsub
import coredis
import glide
import redis
import redis.asyncio
from asgiref.sync import async_to_sync

from realtime.redis.blocking import BlockingRedis
from realtime.redis.commands import Script, ScriptCall
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pubsub import PubSub

CALLERS = 50
"""Tasks that call at once, and commands in an explicit pipeline."""
CHANNEL = "bench:channel"
DATA = b"x" * 150
KEYS = ["bench:meta", "bench:stream"]

PUBLICATION = Script.of(
    "publication",
    """
local offset = redis.call('hincrby', KEYS[1], 's', 1)
redis.call('xadd', KEYS[2], 'MAXLEN', 100, offset .. '-0', 'd', ARGV[1])
redis.call('expire', KEYS[2], 300)
redis.call('publish', ARGV[2], ARGV[1])
return offset
""",
)

Call = Callable[[], Awaitable[object]]
OnMessage = Callable[[], None]
Receiver = Callable[["Server", OnMessage], AbstractAsyncContextManager[None]]
Thread = Callable[["Server"], AbstractContextManager[Callable[[], object]]]


@dataclass(frozen=True)
class Server:
    """The Redis of this run, which has loaded the script."""

    url: str
    port: int
    pid: int


def _glide_options(server: Server, **options: Any) -> Any:
    address = glide.NodeAddress("127.0.0.1", server.port)
    return glide.GlideClientConfiguration([address], **options)


# Commands: each of these yields a function that runs one command, or one pipeline of them.


@contextlib.asynccontextmanager
async def _redis_py(server: Server, script: bool, pipeline: bool) -> AsyncIterator[Call]:
    client = redis.asyncio.Redis.from_url(server.url, max_connections=CALLERS)

    def command(target: Any) -> Any:
        if script:
            return target.evalsha(PUBLICATION.sha, 2, *KEYS, DATA, CHANNEL)
        return target.publish(CHANNEL, DATA)

    async def commands() -> None:
        async with client.pipeline(transaction=False) as batch:
            for _ in range(CALLERS):
                command(batch)
            await batch.execute()

    yield commands if pipeline else partial(command, client)
    await client.aclose()


@contextlib.asynccontextmanager
async def _coredis(
    server: Server, script: bool, pipeline: bool, connections: int | None = None
) -> AsyncIterator[Call]:
    def command(target: Any) -> Any:
        if script:
            return target.evalsha(PUBLICATION.sha, keys=KEYS, args=[DATA, CHANNEL])
        return target.publish(CHANNEL, DATA)

    async with coredis.Redis.from_url(server.url, max_connections=connections) as client:

        async def commands() -> None:
            async with client.pipeline(transaction=False) as batch:
                for _ in range(CALLERS):
                    command(batch)

        yield commands if pipeline else partial(command, client)


@contextlib.asynccontextmanager
async def _glide(server: Server, script: bool, pipeline: bool) -> AsyncIterator[Call]:
    client = await glide.GlideClient.create(_glide_options(server))
    # where glide is installed, its constructor has no types
    loaded = glide.Script(PUBLICATION.text)  # type: ignore[no-untyped-call,unused-ignore]
    evalsha: list[str | bytes] = ["EVALSHA", PUBLICATION.sha, "2", *KEYS, DATA, CHANNEL]

    def command() -> Any:
        if script:
            return client.invoke_script(loaded, keys=[*KEYS], args=[DATA, CHANNEL])
        return client.publish(DATA, CHANNEL)

    async def commands() -> None:
        batch = glide.Batch(is_atomic=False)
        for _ in range(CALLERS):
            if script:
                batch.custom_command(evalsha)
            else:
                batch.publish(DATA, CHANNEL)
        await client.exec(batch, raise_on_error=True)

    yield commands if pipeline else command
    await client.close()


@contextlib.asynccontextmanager
async def _ours(server: Server, script: bool, pipeline: bool) -> AsyncIterator[Call]:
    connection = Connection(Host({"address": server.url}), Timeouts())

    def command() -> Awaitable[object]:
        if script:
            return connection.call(ScriptCall(PUBLICATION, KEYS, [DATA, CHANNEL]))
        return connection.execute(b"PUBLISH", CHANNEL, DATA)

    yield command
    await connection.close()


# Messages: each of these subscribes, and calls `on_message` for every message.


@contextlib.asynccontextmanager
async def _running(receive: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a receiver for the length of a block, which ends with what goes wrong in it."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(receive)
        yield
        task.cancel()


@contextlib.asynccontextmanager
async def _redis_py_messages(
    server: Server, on_message: OnMessage, listen: bool
) -> AsyncIterator[None]:
    client = redis.asyncio.Redis.from_url(server.url)
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    await pubsub.subscribe(CHANNEL)

    async def receive() -> None:
        if listen:
            async for _ in pubsub.listen():
                on_message()
        while True:  # as channels_redis.pubsub does it
            if await pubsub.get_message(ignore_subscribe_messages=True, timeout=0.1):
                on_message()

    async with _running(receive()):
        yield
    await pubsub.aclose()  # type: ignore[no-untyped-call]  # redis-py left it without types
    await client.aclose()


@contextlib.asynccontextmanager
async def _coredis_messages(
    server: Server, on_message: OnMessage, handler: bool
) -> AsyncIterator[None]:
    async with coredis.Redis.from_url(server.url) as client:
        if handler:
            handlers: Any = {CHANNEL: lambda _: on_message()}
            async with client.pubsub(channel_handlers=handlers):
                yield
            return
        async with client.pubsub(channels=[CHANNEL], ignore_subscribe_messages=True) as pubsub:

            async def receive() -> None:
                async for _ in pubsub:
                    on_message()

            async with _running(receive()):
                yield


@contextlib.asynccontextmanager
async def _glide_messages(
    server: Server, on_message: OnMessage, callback: bool
) -> AsyncIterator[None]:
    configuration = glide.GlideClientConfiguration
    subscriptions = configuration.PubSubSubscriptions(
        channels_and_patterns={configuration.PubSubChannelModes.Exact: {CHANNEL}},
        callback=(lambda _message, _context: on_message()) if callback else None,
        context=None,
    )
    client = await glide.GlideClient.create(
        _glide_options(server, pubsub_subscriptions=subscriptions)
    )

    async def receive() -> None:
        with contextlib.suppress(glide.ClosingError):
            while not callback:
                await client.get_pubsub_message()
                on_message()

    async with _running(receive()):
        yield
        # it completes the futures that `close`, or a cancelled caller, has completed
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        await client.close()


@contextlib.asynccontextmanager
async def _our_messages(server: Server, on_message: OnMessage) -> AsyncIterator[None]:
    subscriptions = PubSub(
        Host({"address": server.url}),
        Timeouts(),
        on_message=lambda _name, _data: on_message(),
        on_lost=lambda: None,
        on_restored=lambda: None,
    )
    await subscriptions.subscribe(CHANNEL)
    yield
    await subscriptions.close()


# Plain threads: each of these yields a function that publishes and waits.


@contextlib.contextmanager
def _redis_py_thread(server: Server) -> Iterator[Callable[[], object]]:
    pool = redis.BlockingConnectionPool.from_url(server.url)
    with redis.Redis(connection_pool=pool) as client:
        yield lambda: client.evalsha(PUBLICATION.sha, 2, *KEYS, DATA, CHANNEL)
    pool.disconnect()


@contextlib.contextmanager
def _our_thread(server: Server) -> Iterator[Callable[[], object]]:
    client = BlockingRedis(Host({"address": server.url}), Timeouts())
    yield lambda: client.call(ScriptCall(PUBLICATION, KEYS, [DATA, CHANNEL]))
    client.close()


@contextlib.contextmanager
def _layer_thread(server: Server, layer: Any) -> Iterator[Callable[[], object]]:
    made = layer(hosts=[server.url], prefix=f"bench{next(_prefixes)}")
    group_send = async_to_sync(made.group_send)
    if isinstance(made, channels_redis.core.RedisChannelLayer):  # sends to members only
        async_to_sync(made.group_add)("group", "specific.member!1")
    message = {"type": "bench.message", "data": DATA}
    yield lambda: group_send("group", message)


_prefixes = itertools.count()


@dataclass(frozen=True)
class Way:
    """One way to run commands."""

    name: str
    opened: Callable[[Server, bool, bool], AbstractAsyncContextManager[Call]]
    callers: int = 1
    pipeline: bool = False


OUR_CALLER, OUR_CALLERS = "ours, 1 caller", "ours, 50 callers, one connection"
_SINGLE = partial(_coredis, connections=1)
WAYS = (
    Way("redis.asyncio, 1 caller", _redis_py),
    Way("coredis, 1 caller", _coredis),
    Way("glide, 1 caller", _glide),
    Way(OUR_CALLER, _ours),
    Way("redis.asyncio, 50 callers, a pool", _redis_py, CALLERS),
    Way("coredis, 50 callers, its pool", _coredis, CALLERS),
    Way("coredis, 50 callers, one connection", _SINGLE, CALLERS),
    Way("glide, 50 callers, one connection", _glide, CALLERS),
    Way(OUR_CALLERS, _ours, CALLERS),
    Way("redis.asyncio, pipelines of 50", _redis_py, pipeline=True),
    Way("coredis, pipelines of 50", _coredis, pipeline=True),
    Way("glide, batches of 50", _glide, pipeline=True),
)

OUR_RECEIVER = "ours"
RECEIVERS: dict[str, Receiver] = {
    "redis.asyncio get_message(timeout=0.1)": partial(_redis_py_messages, listen=False),
    "redis.asyncio listen()": partial(_redis_py_messages, listen=True),
    "coredis async for": partial(_coredis_messages, handler=False),
    "coredis handler": partial(_coredis_messages, handler=True),
    "glide get_pubsub_message()": partial(_glide_messages, callback=False),
    "glide callback": partial(_glide_messages, callback=True),
    OUR_RECEIVER: _our_messages,
}
OUR_THREAD = "ours, script"
THREADS: dict[str, Thread] = {
    "redis-py, pool, script": _redis_py_thread,
    OUR_THREAD: _our_thread,
    "async_to_sync, channels_redis.pubsub": partial(
        _layer_thread, layer=channels_redis.pubsub.RedisPubSubChannelLayer
    ),
    "async_to_sync, channels_redis.core": partial(
        _layer_thread, layer=channels_redis.core.RedisChannelLayer
    ),
}
