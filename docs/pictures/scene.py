"""What the pictures show: a shop's site with three nodes over a Redis, and people who use it.

Servers, Redis and browser are started as the tests start theirs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

from realtime.auth import issue
from realtime.config.reader import load
from tests.ready_site import manage
from tests.redis_server import RedisServer
from tests.server import Server

OPERATOR = "maria"
NODES = ("web-1", "web-2", "web-3")

NAMESPACES = [
    {
        "name": "chat",
        "publish": True,
        "subscribe_to_publish": True,
        "presence": True,
        "join_leave": True,
        "history_size": 100,
        "history_lifetime": 3600,
        "history_recover": True,
    },
    {"name": "orders", "history_size": 20, "history_lifetime": 86400, "history_recover": True},
    {"name": "stock", "history_size": 1, "history_lifetime": 60},
]

PEOPLE = (
    *("Ada", "Amir", "Bea", "Carlos", "Chen", "Dana", "Emil", "Fatima", "Goran", "Hana"),
    *("Igor", "Jonas", "Kofi", "Lena", "Malik", "Nadia", "Omar", "Petra", "Quentin", "Rosa"),
    *("Samir", "Tala", "Uma", "Viktor", "Wanda", "Yusuf"),
)
ROOMS = ("lobby", "returns", "berlin", "lisbon", "night-shift", "warehouse")
GOODS = ("lamp-12", "lamp-20", "chair-3", "chair-7", "desk-1", "desk-4", "shelf-9", "rug-2")
FIRST_ORDER = 20_411

LINES = (
    "Good morning!",
    "Two parcels for Lisbon came back, both without a label.",
    "I have one of them here. The other one?",
    "With me, I print new labels now.",
    "desk-4 is sold out until Thursday.",
    "Then please take it off the front page.",
    "Done.",
    "Who is at the desk after six?",
    "I am, until nine.",
    "Thank you!",
)
STATES = ("paid", "packed", "sent", "delivered")
HISTORY = 60
"""Chat lines that are there already."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The running site."""

    nodes: list[Server]
    password: str
    """Of the operator."""
    api_key: str
    token_key: str

    def token(self, person: str) -> str:
        """A connection token that subscribes this person, as the shop's own server would."""
        number = PEOPLE.index(person)
        channels = ["news", f"orders:{FIRST_ORDER + number}"]
        channels += [f"stock:{name}" for name in (GOODS[number % 8], GOODS[(number * 3 + 1) % 8])]
        channels += [f"chat:{ROOMS[0]}"] * (number % 2 == 0)
        channels.append(f"chat:{ROOMS[1 + number % 5]}")
        info = {"name": person, "desk": number % 9 + 1}
        config = load({"token_hmac_secret_key": self.token_key})
        return issue.connection_token(config, person.lower(), channels=channels, info=info)


@asynccontextmanager
async def play(directory: Path) -> AsyncIterator[Scene]:
    """Start all of it; ends with the block."""
    redis = RedisServer(directory / "redis").start()
    scene = None
    try:
        scene = start_site(directory, redis.url)
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(httpx.AsyncClient(timeout=20))
            await fill(scene, api)
            people = [await enter(scene, stack, name, 0) for name in PEOPLE]
            others = [await enter(scene, stack, name, 1) for name in PEOPLE[::3]]
            work = (
                *map(read, (*people, *others)),
                sell(scene, api),
                talk(dict(zip(PEOPLE, people, strict=True))),
                come_and_go(scene),
            )
            tasks = [asyncio.create_task(each) for each in work]
            try:
                yield scene
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        if scene is not None:
            discard(scene.nodes)
        redis.kill()


# the site


def discard(nodes: Iterable[Server]) -> None:
    """Stop the nodes."""
    for node in nodes:
        node.discard()


def start_site(directory: Path, redis_url: str) -> Scene:
    """Migrate a database, add an operator, start the nodes."""
    data = directory / "data"
    data.mkdir()
    password = secrets.token_urlsafe(16)
    code = (
        "from django.contrib.auth.models import User;"
        f"User.objects.create_superuser({OPERATOR!r}, password={password!r})"
    )
    manage(data, "migrate", "--verbosity", "0")
    manage(data, "shell", "--verbosity", "0", "--no-imports", "-c", code)
    api_key, token_key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    environment = {
        "DJANGO_SETTINGS_MODULE": "messaging_project.settings",
        "DJANGO_DATA_DIR": str(data),
        "SERVICE_API_KEY": api_key,
        "SERVICE_TOKEN_HMAC_SECRET_KEY": token_key,
        "SERVICE_NAMESPACES": json.dumps(NAMESPACES),
        "SERVICE_REDIS_URL": redis_url,
        "SERVICE_ADMIN": "true",
        "SERVICE_ADMIN_PASSWORD": secrets.token_urlsafe(32),
        "PAST_PUBLISHED": "6",
        "PAST_CONNECTIONS": "12",
    }
    nodes: list[Server] = []
    try:
        for name in NODES:
            server = Server(
                directory / name,
                environment=environment | {"SERVICE_NAME": name},
                application="tests.live.past_site:application",  # with an hour behind it
            )
            nodes.append(server)
    except BaseException:
        discard(nodes)
        raise
    return Scene(nodes, password, api_key, token_key)


async def publish(
    scene: Scene, api: httpx.AsyncClient, channel: str, data: Sequence[object], node: int = 0
) -> None:
    """Publish each of the data through the server API."""
    commands = (
        {"method": "publish", "params": {"channel": channel, "data": each}} for each in data
    )
    response = await api.post(
        f"{scene.nodes[node].address}/api",
        content="\n".join(json.dumps(command) for command in commands),
        headers={"Authorization": f"apikey {scene.api_key}"},
    )
    response.raise_for_status()


async def fill(scene: Scene, api: httpx.AsyncClient) -> None:
    """What is in the channels before the first visit."""
    lines = itertools.islice(itertools.cycle(LINES), HISTORY)
    await publish(scene, api, f"chat:{ROOMS[0]}", [{"text": line} for line in lines])
    for number in range(len(PEOPLE)):
        order = FIRST_ORDER + number
        states = [{"order": order, "state": state} for state in STATES[: 1 + number % 4]]
        await publish(scene, api, f"orders:{order}", states, number % len(NODES))


# people


async def enter(scene: Scene, stack: AsyncExitStack, person: str, step: int) -> ClientConnection:
    """Connect a person, to the node that comes next."""
    node = scene.nodes[(PEOPLE.index(person) + step) % len(NODES)]
    socket = await stack.enter_async_context(connect(node.socket, compression=None))
    await say(socket, 0, {"token": scene.token(person)})
    await socket.recv()
    return socket


async def read(socket: ClientConnection) -> None:
    """Take what comes, until the node is gone."""
    async for _ in socket:
        pass


async def say(socket: ClientConnection, method: int, params: Mapping[str, Any]) -> None:
    """Send a command; methods have the numbers of the protocol."""
    await socket.send(json.dumps({"id": 1, "method": method, "params": params}))


async def talk(people: Mapping[str, ClientConnection]) -> None:
    """Those in the lobby write a line every few seconds."""
    speakers = itertools.cycle(list(people)[::2])
    for line in itertools.cycle(LINES):
        data = {"channel": f"chat:{ROOMS[0]}", "data": {"text": line}}
        await say(people[next(speakers)], 3, data)
        await asyncio.sleep(2.5)


async def come_and_go(scene: Scene) -> None:
    """A user with a weak connection, so there are joins and leaves."""
    while True:
        async with AsyncExitStack() as stack:
            await enter(scene, stack, "Uma", 2)
            await asyncio.sleep(9)
        await asyncio.sleep(5)


async def sell(scene: Scene, api: httpx.AsyncClient) -> None:
    """Stock changes, in waves."""
    chance = random.Random(1)
    loop = asyncio.get_running_loop()
    for step in itertools.count():
        name = chance.choice(GOODS)
        data = {
            "item": name,
            "left": chance.randrange(40),
            "price": f"{chance.randint(9, 400)}.00",
        }
        await publish(scene, api, f"stock:{name}", [data] * 2, step % 2)
        per_second = 14 + 8 * math.sin(loop.time() / 7) + chance.uniform(-2, 2)
        await asyncio.sleep(1 / per_second)
