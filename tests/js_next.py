"""The published JavaScript client of the second generation, driven from Python. See `js_client`.

client = await open_next(driver, JSON_5, server.socket, user="17")
await client.connect()
await client.subscribe("news")
await client.publication("news")
"""

from __future__ import annotations

from typing import Any

from tests.conftest import connection_token, subscription_token
from tests.js_builds import Build
from tests.js_client import Driver, JsClient

JSON_3 = Build("js-3", "centrifuge-3", use_offset=True, generation=2)
JSON_4 = Build("js-4", "centrifuge-4", use_offset=True, generation=2)
JSON_5 = Build("js-5", "centrifuge-5", use_offset=True, generation=2)
PROTOBUF_5 = Build("js-5-protobuf", "centrifuge-5/build/protobuf", use_offset=True, generation=2)
SOCKJS_5 = Build(
    "js-5-sockjs", "centrifuge-5", use_offset=True, generation=2, sockjs="xhr-streaming"
)

NEXT_BUILDS = (JSON_5, PROTOBUF_5, JSON_3, JSON_4)

RETRY = {"minReconnectDelay": 20, "maxReconnectDelay": 100, "timeout": 10_000}
"""Milliseconds."""
RETRY_SUBSCRIBE = {"minResubscribeDelay": 20, "maxResubscribeDelay": 100}


class NextClient(JsClient):
    """One client object. Its events are those of the JavaScript API."""

    async def publication(self, channel: str) -> Any:
        return (await self.event("publication", channel))["data"]

    async def connected(self) -> dict[str, Any]:
        context = await self.event("connected")
        self.id = context["client"]
        return context

    async def lost(self) -> None:
        while (await self.event("connecting"))["code"] == 0:
            pass  # it began to connect by itself

    async def recovered(self, channel: str) -> None:
        context = await self.event("subscribed", channel)
        assert (context["wasRecovering"], context["recovered"]) == (True, True)

    async def subscribe(self, channel: str, **options: Any) -> dict[str, Any]:
        """Subscribe, and wait until that is done; `options` are those of the subscription."""
        await self.begin_to_subscribe(channel, **options)
        if options.get("asksToken"):
            await self.grant_next()
        return await self.event("subscribed", channel)

    async def begin_to_subscribe(self, channel: str, **options: Any) -> None:
        """Subscribe, and do not wait."""
        await self.call("subscribe", channel=channel, options=RETRY_SUBSCRIBE | options)

    async def grant_next(self, **claims: Any) -> None:
        """Wait until the client asks for a subscription token, and give it a good one."""
        question = await self.question("private")
        data = question.data
        token = subscription_token(data["client"], data["channel"], **claims)
        await question.answer({"token": token})

    async def read_map(self, channel: str, **options: Any) -> dict[str, Any]:
        """Subscribe to a map, and wait until the client has it; returns its entries."""
        await self.call("subscribeMap", channel=channel, options=RETRY_SUBSCRIBE | options)
        return await self.map_read(channel)

    async def map_read(self, channel: str) -> dict[str, Any]:
        """Wait until the client has a map anew; returns its entries."""
        context = await self.event("sync", channel)
        return {entry["key"]: entry.get("data") for entry in context["entries"]}

    async def map_becomes(self, channel: str, entries: dict[str, Any], wanted: Any) -> None:
        """Wait for changes of a map until it is as wanted."""
        while entries != wanted:
            update = await self.event("update", channel)
            if update.get("removed"):
                entries.pop(update["key"], None)
            else:
                entries[update["key"]] = update["data"]

    async def refused(self, channel: str) -> tuple[int, str]:
        """Subscribe, which must be refused for good; returns code and reason."""
        await self.begin_to_subscribe(channel)
        context = await self.event("unsubscribed", channel)
        return context["code"], context["reason"]

    async def settle(self) -> None:
        assert (await self.error("rpc", method="", data=None))[0] == 108


async def open_next(
    driver: Driver,
    build: Build,
    url: str,
    *,
    user: str = "17",
    token: str | None = None,
    **options: Any,
) -> NextClient:
    """Make a client that is not connected yet. `options` are those of its constructor."""
    client = NextClient(driver, driver.new_name(), build)
    driver.add(client)
    if build.sockjs:
        options["sockjs"] = build.sockjs
    await client.call(
        "create",
        module=build.module,
        generation=2,
        url=build.url(url),
        token=token or connection_token(user),
        options=RETRY | options,
    )
    return client
