"""HTTP endpoints of an application elsewhere that decide in the site's place.

Every question is a POST with a JSON object. An answer counts with status 200 only; any other
one, none in time, or one that cannot be understood is error 100 for the client and one line in
the log, which holds nothing of what was asked or answered.

Beyond the spec: bodies, headers and answers are those of Centrifugo 2.8. Names in
`proxy_extra_http_headers` match in any spelling, as header names do; there only the canonical
one works.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from realtime import payload
from realtime.config.options import Config
from realtime.errors import InternalError
from realtime.node.hooks import Caller, Handshake, Identity, Refresh
from realtime.payload import Payload
from realtime.protocol.json_stream import ObjectDecoder
from realtime.protocol.messages import ChannelName
from realtime.proxy import answers

if TYPE_CHECKING:
    from realtime.proxy.http import Poster

logger = logging.getLogger("realtime.hooks")

CONCURRENT_CALLS = 100
"""Calls of one endpoint that run at once; more wait for their turn, within their timeout."""

NOT_FORWARDED = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers that say something about the handshake's own request, and nothing about another."""

R = TypeVar("R", bound=Struct)
T = TypeVar("T")


class _Endpoint:
    """One URL."""

    def __init__(self, kind: str, url: str, timeout: float) -> None:
        """`timeout`: seconds, 0 for none."""
        self.kind = kind
        self.url = url
        self.timeout = timeout or None
        self.turns = asyncio.Semaphore(CONCURRENT_CALLS)

    def __str__(self) -> str:
        """For the log: without query and credentials."""
        parts = urlsplit(self.url)
        return (
            f"{self.kind} endpoint {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        )


class Endpoints:
    """Asks HTTP endpoints. Belongs to one event loop."""

    def __init__(self, config: Config) -> None:
        configured = (
            _Endpoint("connect", config.proxy_connect_endpoint, config.proxy_connect_timeout),
            _Endpoint("refresh", config.proxy_refresh_endpoint, config.proxy_refresh_timeout),
            _Endpoint("subscribe", config.proxy_subscribe_endpoint, config.proxy_subscribe_timeout),
            _Endpoint("publish", config.proxy_publish_endpoint, config.proxy_publish_timeout),
            _Endpoint("rpc", config.proxy_rpc_endpoint, config.proxy_rpc_timeout),
        )
        self._endpoints = {endpoint.kind: endpoint for endpoint in configured if endpoint.url}
        self._poster: Poster | None = None
        if self._endpoints:
            # importing httpx takes a fifth of a second, which most sites need not spend
            from realtime.proxy.http import Poster

            self._poster = Poster()

    def has(self, kind: str) -> bool:
        """Whether there is an endpoint of this kind."""
        return kind in self._endpoints

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        """See `hooks.base.Hooks`, here and below.

        Raises:
            Error, Disconnect: the application says so, in all of them.
            InternalError: the call failed; the log says why.
        """
        fields = _data_fields(caller.handshake, data)
        if name:
            fields["name"] = name
        if version:
            fields["version"] = version

        def meaning(result: answers.ConnectResult) -> Identity:
            return Identity(
                user=result.user or "",
                info=answers.info(result, caller.handshake),
                channels=tuple(result.channels or ()),
                expires_at=result.expire_at or None,
                data=answers.data_for_client(result, caller.handshake),
            )

        return await self._ask("connect", caller, fields, answers.connect, meaning)

    async def refresh(self, caller: Caller) -> Refresh | None:
        """Whether the connection goes on; what else the application says is not looked at."""

        def meaning(result: answers.RefreshResult) -> Refresh | None:
            new_info = answers.info(result, caller.handshake)
            return None if result.expired else Refresh(result.expire_at or 0, new_info)

        fields: dict[str, object] = {"user": caller.user}
        return await self._ask("refresh", caller, fields, answers.refresh, meaning, refusals=False)

    async def subscribe(self, caller: Caller, channel: ChannelName, token: str) -> Payload | None:
        fields: dict[str, object] = {"user": caller.user, "channel": channel}
        if token:
            fields["token"] = token
        return await self._ask(
            "subscribe",
            caller,
            fields,
            answers.subscribe,
            lambda result: answers.info(result, caller.handshake),
        )

    async def publish(self, caller: Caller, channel: ChannelName, data: Payload) -> Payload:
        fields: dict[str, object] = {"user": caller.user, "channel": channel}
        fields |= _data_fields(caller.handshake, data.raw)
        replaced = await self._ask("publish", caller, fields, answers.data, answers.replacement)
        return data if replaced is None else replaced

    async def rpc(self, caller: Caller, method: str, data: bytes) -> Payload | None:
        fields: dict[str, object] = {"user": caller.user}
        if method:
            fields["method"] = method
        fields |= _data_fields(caller.handshake, data)
        return await self._ask(
            "rpc",
            caller,
            fields,
            answers.data,
            lambda result: answers.data_for_client(result, caller.handshake),
        )

    async def close(self) -> None:
        """Close the connections to the application. Bounded in time."""
        if self._poster is not None:
            await self._poster.close()

    async def _ask(
        self,
        kind: str,
        caller: Caller,
        fields: dict[str, object],
        result: ObjectDecoder[R],
        meaning: Callable[[R], T],
        *,
        refusals: bool = True,
    ) -> T | None:
        """What the endpoint's result means; None when it has none.

        `fields`: of the body, behind those that say who asks.
        """
        endpoint = self._endpoints[kind]
        handshake = caller.handshake
        common = {
            "client": caller.client,
            "transport": handshake.transport,
            "protocol": handshake.protocol,
            "encoding": handshake.encoding,
        }
        assert self._poster is not None
        try:
            async with asyncio.timeout(endpoint.timeout), endpoint.turns:
                body = await self._poster.post(
                    endpoint.url, _headers(handshake), msgspec.json.encode(common | fields)
                )
            given = answers.read(body, result, refusals=refusals)
            return None if given is None else meaning(given)
        except TimeoutError:
            reason = f"no answer within {endpoint.timeout:g} s"
        except answers.NoAnswer as error:
            reason = str(error)
        logger.error("The %s failed: %s", endpoint, reason)
        raise InternalError


def _headers(handshake: Handshake) -> dict[str, str]:
    return {name: value for name, value in handshake.headers.items() if name not in NOT_FORWARDED}


def _data_fields(handshake: Handshake, data: bytes) -> dict[str, object]:
    """What a client sent, as a field of the body; none for nothing.

    Raises:
        InternalError: it is no JSON.
    """
    if not data:
        return {}
    if handshake.encoding == "binary":
        return {"b64data": base64.b64encode(data).decode()}
    try:
        return {"data": Raw(payload.check(data).json)}
    except ValueError:
        logger.info("A client sent what is not JSON, so no endpoint is asked")
        raise InternalError from None
