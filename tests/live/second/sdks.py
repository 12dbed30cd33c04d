"""The three published libraries that are tested, driven in one way.

async with open_python(proxy.url, connection_token("17"), protobuf=True) as sdk:
    await sdk.connect()
    await sdk.subscribe("news")
    await sdk.subscribed("news")
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from centrifuge import (
    Client,
    ClientEventHandler,
    ConnectedContext,
    DisconnectedContext,
    Filter,
    JoinContext,
    Publication,
    PublicationContext,
    ReplyError,
    ServerJoinContext,
    ServerPublicationContext,
    ServerSubscribedContext,
    StreamPosition,
    SubscribedContext,
    Subscription,
    SubscriptionEventHandler,
    UnsubscribedContext,
)

from tests.js_client import Driver, JsError
from tests.js_next import JSON_5, PROTOBUF_5, NextClient, open_next
from tests.live.python_client import python_client
from tests.live.second.go_client import GoClient, open_go
from tests.live.second.sdk import History, Refused, Sdk

TIMEOUT = 20.0


class JsSdk(Sdk):
    def __init__(self, client: NextClient) -> None:
        self._client = client

    async def connect(self) -> None:
        await self._client.call("connect")

    async def connected(self) -> str:
        return str((await self._client.connected())["client"])

    async def disconnect(self) -> None:
        await self._client.call("disconnect")

    async def disconnected(self) -> int:
        return int((await self._client.event("disconnected"))["code"])

    async def subscribe(
        self,
        channel: str,
        *,
        asks_state: bool = False,
        teams: Collection[str] = (),
        token: str = "",
    ) -> None:
        options: dict[str, Any] = {"asksState": asks_state}
        if token:
            options["token"] = token
        if teams:
            node = {"key": "team", "cmp": "in", "vals": list(teams)}
            options["tagsFilter"] = {"op": "and", "nodes": [node]}
        await self._client.begin_to_subscribe(channel, **options)

    async def subscribe_again(self, channel: str) -> None:
        await self._client.call("subscribeAgain", channel=channel)

    async def subscribed(self, channel: str) -> tuple[bool, bool]:
        context = await self._client.event("subscribed", channel)
        return context["wasRecovering"], context["recovered"]

    async def unsubscribe(self, channel: str) -> None:
        await self._client.call("unsubscribe", channel=channel)

    async def unsubscribed(self, channel: str) -> int:
        return int((await self._client.event("unsubscribed", channel))["code"])

    async def give_state(self, position: dict[str, Any]) -> None:
        await (await self._client.question("state")).answer(position)

    def asks_state(self) -> bool:
        return any(question.kind == "state" for question in self._client.questions)

    async def values(self, channel: str, count: int) -> list[Any]:
        return await self._client.publications(channel, count)

    async def joined(self, channel: str) -> str:
        return str((await self._client.event("join", channel))["info"]["client"])

    async def _call(self, action: str, **params: Any) -> Any:
        try:
            return await self._client.call(action, **params)
        except JsError as error:
            raise Refused(error.code) from None

    async def publish(self, channel: str, data: Any) -> None:
        await self._call("publish", channel=channel, data=data)

    async def rpc(self) -> None:
        await self._call("rpc", method="", data=None)

    async def history(self, channel: str, limit: int, **options: Any) -> History:
        found = await self._call("history", channel=channel, options={"limit": limit, **options})
        position = {"offset": found["offset"], "epoch": found["epoch"]}
        return History([each["data"] for each in found["publications"]], position)

    async def presence(self, channel: str) -> dict[str, str]:
        clients = (await self._call("presence", channel=channel))["clients"]
        return {client: info["user"] for client, info in clients.items()}

    async def present(self, channel: str) -> tuple[int, int]:
        found = await self._call("presenceStats", channel=channel)
        return found["numClients"], found["numUsers"]


class _Events:
    """What the Python library reports, by the kind and the channel."""

    def __init__(self) -> None:
        self._queues: defaultdict[tuple[str, str], asyncio.Queue[Any]] = defaultdict(asyncio.Queue)

    def add(self, kind: str, channel: str, context: Any) -> None:
        self._queues[kind, channel].put_nowait(context)

    async def next(self, kind: str, channel: str = "") -> Any:
        async with asyncio.timeout(TIMEOUT):
            return await self._queues[kind, channel].get()

    def has(self, kind: str) -> bool:
        return any(queue.qsize() for (name, _), queue in self._queues.items() if name == kind)


class _ClientEvents(ClientEventHandler):
    def __init__(self, events: _Events) -> None:
        self._events = events

    async def on_connected(self, ctx: ConnectedContext) -> None:
        self._events.add("connected", "", ctx)

    async def on_disconnected(self, ctx: DisconnectedContext) -> None:
        self._events.add("disconnected", "", ctx)

    async def on_subscribed(self, ctx: ServerSubscribedContext) -> None:
        self._events.add("subscribed", ctx.channel, ctx)

    async def on_publication(self, ctx: ServerPublicationContext) -> None:
        self._events.add("publication", ctx.channel, ctx)

    async def on_join(self, ctx: ServerJoinContext) -> None:
        self._events.add("join", ctx.channel, ctx)


class _SubscriptionEvents(SubscriptionEventHandler):
    def __init__(self, events: _Events, channel: str) -> None:
        self._events, self._channel = events, channel

    async def on_subscribed(self, ctx: SubscribedContext) -> None:
        self._events.add("subscribed", self._channel, ctx)

    async def on_unsubscribed(self, ctx: UnsubscribedContext) -> None:
        self._events.add("unsubscribed", self._channel, ctx)

    async def on_publication(self, ctx: PublicationContext) -> None:
        self._events.add("publication", self._channel, ctx)

    async def on_join(self, ctx: JoinContext) -> None:
        self._events.add("join", self._channel, ctx)


class PythonSdk(Sdk):
    def __init__(self, client: Client, protobuf: bool) -> None:
        self._client, self._protobuf = client, protobuf
        self._events = _Events()
        client.events = _ClientEvents(self._events)

    def _data(self, publication: Publication) -> Any:
        return json.loads(publication.data) if self._protobuf else publication.data

    def _of(self, channel: str) -> Subscription:
        found = self._client.get_subscription(channel)
        assert found is not None
        return found

    async def connect(self) -> None:
        await self._client.connect()

    async def connected(self) -> str:
        return str((await self._events.next("connected")).client)

    async def disconnect(self) -> None:
        await self._client.disconnect()

    async def disconnected(self) -> int:
        return int((await self._events.next("disconnected")).code)

    async def subscribe(
        self,
        channel: str,
        *,
        asks_state: bool = False,
        teams: Collection[str] = (),
        token: str = "",
    ) -> None:
        async def state(channel: str) -> StreamPosition:
            asked: asyncio.Future[StreamPosition] = asyncio.get_running_loop().create_future()
            self._events.add("state", "", asked)
            return await asked

        subscription = self._client.new_subscription(
            channel,
            _SubscriptionEvents(self._events, channel),
            token=token,
            tags_filter=Filter.all(Filter.is_in("team", list(teams))) if teams else None,
            get_state=state if asks_state else None,
            min_resubscribe_delay=0.02,
            max_resubscribe_delay=0.1,
        )
        await subscription.subscribe()

    async def subscribe_again(self, channel: str) -> None:
        await self._of(channel).subscribe()

    async def subscribed(self, channel: str) -> tuple[bool, bool]:
        context = await self._events.next("subscribed", channel)
        return context.was_recovering, context.recovered

    async def unsubscribe(self, channel: str) -> None:
        await self._of(channel).unsubscribe()

    async def unsubscribed(self, channel: str) -> int:
        return int((await self._events.next("unsubscribed", channel)).code)

    async def give_state(self, position: dict[str, Any]) -> None:
        (await self._events.next("state")).set_result(StreamPosition(**position))

    def asks_state(self) -> bool:
        return self._events.has("state")

    async def values(self, channel: str, count: int) -> list[Any]:
        contexts = [await self._events.next("publication", channel) for _ in range(count)]
        return [self._data(context.pub) for context in contexts]

    async def joined(self, channel: str) -> str:
        return str((await self._events.next("join", channel)).info.client)

    async def publish(self, channel: str, data: Any) -> None:
        payload = json.dumps(data).encode() if self._protobuf else data
        await _unless_refused(self._client.publish(channel, payload))

    async def rpc(self) -> None:
        await _unless_refused(self._client.rpc("", b"null" if self._protobuf else None))

    async def history(self, channel: str, limit: int, **options: Any) -> History:
        if "since" in options:
            options["since"] = StreamPosition(**options["since"])
        found = await _unless_refused(self._client.history(channel, limit=limit, **options))
        position = {"offset": found.offset, "epoch": found.epoch}
        return History([self._data(each) for each in found.publications], position)

    async def presence(self, channel: str) -> dict[str, str]:
        found = await _unless_refused(self._client.presence(channel))
        return {client: info.user for client, info in found.clients.items()}

    async def present(self, channel: str) -> tuple[int, int]:
        found = await _unless_refused(self._client.presence_stats(channel))
        return found.num_clients, found.num_users


async def _unless_refused(call: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await call
    except ReplyError as error:
        raise Refused(error.code) from None


class GoSdk(Sdk):
    def __init__(self, client: GoClient) -> None:
        self._client = client

    async def connect(self) -> None:
        await self._client.call("connect")

    async def connected(self) -> str:
        return str((await self._client.event("connected"))["client"])

    async def disconnect(self) -> None:
        await self._call("disconnect")

    async def disconnected(self) -> int:
        return int((await self._client.event("disconnected"))["code"])

    async def subscribe(
        self,
        channel: str,
        *,
        asks_state: bool = False,
        teams: Collection[str] = (),
        token: str = "",
    ) -> None:
        await self._call(
            "subscribe",
            channel=channel,
            asks_state=asks_state,
            teams=list(teams) or None,
            token=token,
        )

    async def subscribe_again(self, channel: str) -> None:
        await self._call("subscribe_again", channel=channel)

    async def subscribed(self, channel: str) -> tuple[bool, bool]:
        event = await self._client.event("subscribed", channel)
        return event["was_recovering"], event["recovered"]

    async def unsubscribe(self, channel: str) -> None:
        await self._call("unsubscribe", channel=channel)

    async def unsubscribed(self, channel: str) -> int:
        return int((await self._client.event("unsubscribed", channel))["code"])

    async def give_state(self, position: dict[str, Any]) -> None:
        await self._client.event("state")
        self._client.say("state", state=position)

    def asks_state(self) -> bool:
        return bool(self._client.unread("state"))

    async def values(self, channel: str, count: int) -> list[Any]:
        return await self._client.publications(channel, count)

    async def joined(self, channel: str) -> str:
        return str((await self._client.event("join", channel))["client"])

    async def _call(self, do: str, **arguments: Any) -> dict[str, Any]:
        answer = await self._client.call(do, **arguments)
        if "code" in answer:
            raise Refused(answer["code"])
        assert "error" not in answer, answer
        return answer

    async def publish(self, channel: str, data: Any) -> None:
        await self._call("publish", channel=channel, data=data)

    async def rpc(self) -> None:
        await self._call("rpc")

    async def history(self, channel: str, limit: int, **options: Any) -> History:
        found = await self._call("history", channel=channel, limit=limit, **options)
        return History(found["values"], {name: found[name] for name in ("offset", "epoch")})

    async def presence(self, channel: str) -> dict[str, str]:
        users: dict[str, str] = (await self._call("presence", channel=channel))["users"]
        return users

    async def present(self, channel: str) -> tuple[int, int]:
        found = await self._call("presence_stats", channel=channel)
        return found["clients"], found["users"]


async def open_js(driver: Driver, url: str, token: str, *, protobuf: bool) -> Sdk:
    return JsSdk(await open_next(driver, PROTOBUF_5 if protobuf else JSON_5, url, token=token))


@asynccontextmanager
async def open_python(url: str, token: str, *, protobuf: bool) -> AsyncIterator[Sdk]:
    delays = {"min_reconnect_delay": 0.02, "max_reconnect_delay": 0.1}
    async with python_client(url, token=token, use_protobuf=protobuf, **delays) as client:
        yield PythonSdk(client, protobuf)


@asynccontextmanager
async def open_go_sdk(program: Path, url: str, token: str, *, protobuf: bool) -> AsyncIterator[Sdk]:
    async with open_go(program, url, token=token, protobuf=protobuf) as client:
        yield GoSdk(client)
