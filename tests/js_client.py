"""The published JavaScript client, driven from Python: what it does is told in events.

    async with open_driver(node) as driver:
        client = await driver.client(build, server.socket, token=...)
        await client.connect()
        await client.subscribe("news")
        await client.publication("news")

A Node process (`js/driver.mjs`), one for many tests, holds the clients. When one of them wants a
token it asks a question, and the test answers it: `await (await
client.question("refresh")).answer(...)`. Everything waits for what is announced; nothing sleeps.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.conftest import subscription_token
from tests.js_builds import Build
from tests.js_node import NodeProcess
from tests.tcp_proxy import TcpProxy

TIMEOUT = 60.0
LINE_LIMIT_BYTES = 16 * 1024 * 1024

RETRY = {"minRetry": 20, "maxRetry": 100}
"""Milliseconds between a client's attempts to connect; the default is 1 to 20 s."""

SOCKJS = {"pingInterval": 250, "sockjsTimeout": 10_000}
"""Milliseconds. Under Node sockjs-client is not told when a stream breaks off, so its user
notices at the next ping; and a busy machine may need more than 0.6 s for two requests."""


SOON = 3
"""Seconds in which tokens expire: up to one less is left, and a client has to connect in that."""

KEPT = 5
"""Publications kept per channel in the namespace "rec"."""

OPTIONS: dict[str, Any] = {
    "client_expired_close_delay": 2,
    "client_expired_sub_close_delay": 2,
    "namespaces": [
        {
            "name": "chat",
            "publish": True,
            "presence": True,
            "join_leave": True,
            "history_size": 10,
            "history_lifetime": 300,
        },
        {
            "name": "rec",
            "presence": True,
            "history_size": KEPT,
            "history_lifetime": 300,
            "history_recover": True,
        },
        {"name": "ours", "server_side": True, "join_leave": True},
    ],
}
"""The options of the servers of these tests. The top level has every channel option off."""


class JsError(Exception):
    """A call of the client was rejected with this error object."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Event:
    """Something the client emitted; `channel` is None for events of the connection."""

    name: str
    channel: str | None
    context: Any


@dataclass(frozen=True)
class Question:
    """The client asks the application for a token."""

    client: JsClient
    kind: str
    number: int
    data: dict[str, Any]

    async def answer(self, data: dict[str, Any]) -> None:
        """Answer as an endpoint with status 200 would."""
        await self.client.call("answer", number=self.number, response={"status": 200, "data": data})


class Driver:
    """A conversation with a Node process about clients of its own."""

    def __init__(
        self, node: NodeProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._node = node
        self._clients: dict[str, JsClient] = {}
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 1
        self._changed = asyncio.Condition()
        self._failure = ""
        self._writer = writer
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def open(cls, node: NodeProcess) -> Driver:
        """Begin a conversation."""
        streams = await asyncio.open_connection("127.0.0.1", node.port, limit=LINE_LIMIT_BYTES)
        return cls(node, *streams)

    async def client(
        self,
        build: Build,
        url: str,
        *,
        token: str | None = None,
        page: Mapping[str, str] | None = None,
        **options: Any,
    ) -> JsClient:
        """A new client, not connected yet. `options` are those of the client's constructor.

        `url`: of the WebSocket endpoint; a build over SockJS goes to that of SockJS beside it.
        `page`: `origin` and `cookie` of the page it runs in. It asks for tokens over HTTP
        then, as it does by default, and not the test.
        """
        client = JsClient(self, self.new_name(), build)
        self.add(client)
        await client.call(
            "create",
            module=build.module,
            sockjs=build.sockjs,
            url=build.url(url),
            token=token,
            page=page,
            options=RETRY | (SOCKJS if build.sockjs else {}) | options,
        )
        return client

    def new_name(self) -> str:
        """Return a name for one more client."""
        return f"client {len(self._clients) + 1}"

    def add(self, client: JsClient) -> None:
        """Take what the process tells about a client."""
        self._clients[client.name] = client

    async def call(self, client: str, action: str, params: dict[str, Any]) -> Any:
        """Run one command; returns its result.

        Raises:
            JsError
        """
        command_id = self._next_id
        self._next_id += 1
        reply = self._replies[command_id] = asyncio.get_running_loop().create_future()
        command = {"id": command_id, "client": client, "action": action, "params": params}
        self._writer.write(json.dumps(command).encode() + b"\n")
        async with asyncio.timeout(TIMEOUT):
            return await reply

    async def wait(self, condition: Callable[[], Any], what: Callable[[], str]) -> None:
        """Wait until something that the process tells makes the condition true."""
        try:
            async with asyncio.timeout(TIMEOUT), self._changed:
                await self._changed.wait_for(lambda: self._failure or condition())
        except TimeoutError:
            raise AssertionError(what()) from None
        assert not self._failure, self._failure

    async def close(self) -> None:
        """End the conversation. The process must not have failed."""
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        assert not self._failure, self._failure

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            async for line in reader:
                self._take(json.loads(line))
                async with self._changed:
                    self._changed.notify_all()
        self._failure = await asyncio.to_thread(self._node.failure)
        for reply in self._replies.values():
            if not reply.done():  # which was given up
                reply.set_exception(RuntimeError(self._failure))
        async with self._changed:
            self._changed.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        if "reply" in message:
            reply = self._replies.pop(message["reply"])
            if reply.done():
                return
            if "error" in message:
                reply.set_exception(JsError(**message["error"]))
            else:
                reply.set_result(message["result"])
            return
        client = self._clients[message["client"]]
        if "question" in message:
            client.questions.append(
                Question(client, message["question"], message["number"], message["data"])
            )
        else:
            client.events.append(
                Event(message["event"], message.get("channel"), message.get("context"))
            )


class JsClient:
    """One client object. Its methods are those of the JavaScript API."""

    def __init__(self, driver: Driver, name: str, build: Build) -> None:
        self._driver = driver
        self.name = name
        self.build = build
        self.id = ""
        """The client ID, once `connect` has returned."""
        self.events: list[Event] = []
        """What was emitted and not asked for yet, oldest first."""
        self.questions: list[Question] = []

    async def call(self, action: str, **params: Any) -> Any:
        """Run a method of the client; returns what its promise resolves to.

        Raises:
            JsError: the promise is rejected.
        """
        return await self._driver.call(self.name, action, params)

    async def error(self, action: str, **params: Any) -> tuple[int, str]:
        """As `call`, for a call that must be rejected; returns code and message."""
        try:
            result = await self.call(action, **params)
        except JsError as error:
            return error.code, error.message
        raise AssertionError(f"{action} was not rejected: {result}")

    # events

    async def event(self, name: str, channel: str | None = None) -> dict[str, Any]:
        """Wait for the oldest such event that was not asked for yet; returns its context."""
        found: list[Event] = []

        def find() -> bool:
            found.extend(e for e in self.events if (e.name, e.channel) == (name, channel))
            return bool(found)

        await self._driver.wait(
            find, lambda: f"{self.name}: no event {name} in {channel}, but {self.events}"
        )
        self.events.remove(found[0])
        context: dict[str, Any] = found[0].context
        return context

    async def publication(self, channel: str) -> Any:
        """Wait for the next publication in a channel; returns its data."""
        return (await self.event("publish", channel))["data"]

    async def publications(self, channel: str, count: int) -> list[Any]:
        """Wait for the next publications in a channel; returns their data."""
        return [await self.publication(channel) for _ in range(count)]

    def unread(self, name: str, channel: str | None = None) -> list[dict[str, Any]]:
        """The contexts of such events that were not asked for. See also `settle`."""
        return [e.context for e in self.events if (e.name, e.channel) == (name, channel)]

    async def settle(self) -> None:
        """Everything the server sent this client before now has been emitted.

        A command is answered after what was sent before it; there is no RPC handler.
        """
        assert await self.error("rpc", method="", data=None) == (108, "not available")

    # questions

    async def question(self, kind: str) -> Question:
        """Wait for the next question of this kind: "refresh" or "private"."""
        found: list[Question] = []

        def find() -> bool:
            found.extend(q for q in self.questions if q.kind == kind)
            return bool(found)

        await self._driver.wait(find, lambda: f"{self.name}: no question {kind}")
        self.questions.remove(found[0])
        return found[0]

    async def refresh_with(self, token: str) -> None:
        """Wait until the client asks for a connection token, and give it this one."""
        await (await self.question("refresh")).answer({"token": token})

    async def grant(self, **claims: Any) -> Question:
        """Wait until the client asks for subscription tokens, and give it good ones."""
        question = await self.question("private")
        await question.answer(
            {
                "channels": [
                    {
                        "channel": channel,
                        "token": subscription_token(question.data["client"], channel, **claims),
                    }
                    for channel in question.data["channels"]
                ]
            }
        )
        return question

    # the usual steps

    async def connect(self) -> dict[str, Any]:
        """Connect, and wait until that is done; returns the context of the event."""
        await self.call("connect")
        return await self.connected()

    async def connected(self) -> dict[str, Any]:
        """Wait for the event `connect`, the first one or that of a reconnect."""
        context = await self.event("connect")
        self.id = context["client"]
        return context

    async def lost(self) -> None:
        """Wait until the client notices that its connection is gone, and will reconnect."""
        context = await self.event("disconnect")
        assert context["reconnect"] is True
        if not self.build.sockjs:  # which tells how it noticed
            assert context["reason"] == "connection closed"

    @asynccontextmanager
    async def away(self, proxy: TcpProxy) -> AsyncIterator[None]:
        """Lose the connection, by way of a proxy, for the length of the block."""
        proxy.refuse()
        await self.lost()
        yield
        proxy.allow()
        await self.connected()

    async def recovered(self, channel: str) -> None:
        """Wait until the channel is subscribed again, with all that was missed."""
        context = await self.event("subscribe", channel)
        assert (context["isResubscribe"], context["recovered"]) == (True, True)

    async def subscribe(self, channel: str, **claims: Any) -> dict[str, Any]:
        """Subscribe, and wait until that is done; `claims` are those of a token if one is asked."""
        await self.call("subscribe", channel=channel)
        if channel.startswith("$"):
            await self.grant(**claims)
        return await self.event("subscribe", channel)

    async def refused(self, channel: str) -> tuple[int, str]:
        """Subscribe, which must be refused; returns code and message."""
        await self.call("subscribe", channel=channel)
        context = await self.event("error", channel)
        return context["code"], context["message"]

    async def publish(self, channel: str, data: Any) -> None:
        """Publish as this client."""
        assert await self.call("publish", channel=channel, data=data) == {}


FindNode = Callable[[Build], NodeProcess]
"""As the fixture `node_process`."""

NewClient = Callable[..., Awaitable[JsClient]]
"""As the fixtures `new_client` and `connect_js`."""


@asynccontextmanager
async def open_driver(node: NodeProcess) -> AsyncIterator[Driver]:
    """A conversation with a Node process, ended when the block ends."""
    driver = await Driver.open(node)
    try:
        yield driver
    finally:
        await driver.close()
