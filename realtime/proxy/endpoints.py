"""HTTP endpoints of an application elsewhere that decide in place of hooks.

Each call is a POST of a JSON object. Only a response with status 200 counts. Any other status,
a timeout or a malformed response is error 100 for the client and one line in the log, without
any data of the request or the response.

Beyond the spec: bodies, headers and responses are those of Centrifugo 2.8. Names in
`proxy_extra_http_headers` match in any case, as header names do; there only the canonical
spelling works.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from realtime import payload
from realtime.config.options import Config
from realtime.config.proxy_options import PROXIES
from realtime.errors import InternalError
from realtime.node.hooks import Caller, Handshake, Identity, KeyChange, Refreshed, forwarded_headers
from realtime.payload import Payload
from realtime.protocol.json_stream import ObjectDecoder
from realtime.protocol.messages import ChannelName
from realtime.proxy import responses

if TYPE_CHECKING:
    from realtime.proxy.client import ProxyClient

logger = logging.getLogger("realtime.hooks")

MAX_CONCURRENT_CALLS = 100
"""Calls of one endpoint at once; others wait, and the wait counts for their timeout."""

NOT_FORWARDED = frozenset(
    """
    accept-encoding connection content-encoding content-length content-type expect host keep-alive
    te trailer transfer-encoding upgrade
    """.split()  # noqa: SIM905 - read as words
)
"""Headers about the request of the handshake itself."""

R = TypeVar("R", bound=Struct)
T = TypeVar("T")


class _Endpoint:
    """One URL."""

    def __init__(self, kind: str, config: Config) -> None:
        """
        Args:
            kind: connect, refresh, subscribe, publish or rpc.
            config: the options.
        """
        self.kind = kind
        proxy = config.proxies[kind]
        self.url = proxy.endpoint
        self.timeout = proxy.timeout or None
        """Seconds a call may take; None for no limit."""
        if proxy.http_headers is None:
            names = forwarded_headers(config.proxy_extra_http_headers)
        else:
            names = frozenset(map(str.lower, proxy.http_headers))
        self.headers = names - NOT_FORWARDED
        """The headers of the handshake that it gets, in lower case. Others get more."""
        self.emulated = frozenset(map(str.lower, proxy.emulated_headers or ())) - NOT_FORWARDED
        """The headers of the connect request that it gets, in lower case."""
        self.includes_meta = config.includes_meta(kind)
        self.slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)

    def __str__(self) -> str:
        """Return a name for the log, without query and credentials."""
        parts = urlsplit(self.url)
        return (
            f"{self.kind} endpoint {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        )


class Endpoints:
    """The configured endpoints. Belongs to one event loop."""

    def __init__(self, config: Config) -> None:
        self._endpoints = {
            kind: _Endpoint(kind, config) for kind in PROXIES if config.proxies[kind].endpoint
        }
        self.emulated_headers = frozenset[str]().union(
            *(endpoint.emulated for endpoint in self._endpoints.values())
        )
        """The headers of a connect request that any endpoint gets, in lower case."""
        self._client: ProxyClient | None = None
        if self._endpoints:
            # importing httpx takes a fifth of a second, which most sites need not spend
            from realtime.proxy.client import ProxyClient

            self._client = ProxyClient()

    def has(self, kind: str) -> bool:
        """Return whether there is an endpoint of this kind."""
        return kind in self._endpoints

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        """Ask the endpoint who a client is. Args: see `node.hooks.Hooks`, as for the methods below.

        Raises:
            Error, Disconnect: the response holds one.
            InternalError: the call failed; the log has the reason.
        """
        fields = _data_fields(caller.handshake, data)
        if name:
            fields["name"] = name
        if version:
            fields["version"] = version

        def identity(result: responses.ConnectResult) -> Identity:
            return Identity(
                user=result.user or "",
                info=responses.info(result, caller.handshake),
                channels=tuple(result.channels or ()),
                expires_at=result.expire_at or None,
                data=responses.data_for_client(result, caller.handshake),
                meta=responses.meta(result),
            )

        return await self._call("connect", caller, fields, responses.connect, identity)

    async def refresh(self, caller: Caller) -> Refreshed | None:
        """See `node.hooks.Hooks`. Errors and disconnects in the response have no effect."""

        def until(result: responses.RefreshResult) -> Refreshed | None:
            new_info = responses.info(result, caller.handshake)
            return None if result.expired else Refreshed(result.expire_at or 0, new_info)

        fields: dict[str, object] = {"user": caller.user}
        return await self._call("refresh", caller, fields, responses.refresh, until, refusals=False)

    async def subscribe(self, caller: Caller, channel: ChannelName, token: str) -> Payload | None:
        fields: dict[str, object] = {"user": caller.user, "channel": channel}
        if token:
            fields["token"] = token
        return await self._call(
            "subscribe",
            caller,
            fields,
            responses.subscribe,
            lambda result: responses.info(result, caller.handshake),
        )

    async def publish(self, caller: Caller, channel: ChannelName, data: Payload) -> Payload:
        fields: dict[str, object] = {"user": caller.user, "channel": channel}
        fields |= _data_fields(caller.handshake, data.raw)
        replaced = await self._call(
            "publish", caller, fields, responses.data, responses.replacement
        )
        return data if replaced is None else replaced

    async def put(self, caller: Caller, channel: ChannelName, change: KeyChange) -> KeyChange:
        fields: dict[str, object] = {"user": caller.user, "channel": channel, "key": change.key}
        if change.data is None:
            fields["removed"] = True
        else:
            fields |= _data_fields(caller.handshake, change.data.raw)
        replaced = await self._call(
            "publish",
            caller,
            fields,
            responses.change,
            lambda result: responses.changed(result, change),
        )
        return change if replaced is None else replaced

    async def rpc(self, caller: Caller, method: str, data: bytes) -> Payload | None:
        fields: dict[str, object] = {"user": caller.user}
        if method:
            fields["method"] = method
        fields |= _data_fields(caller.handshake, data)
        return await self._call(
            "rpc",
            caller,
            fields,
            responses.data,
            lambda result: responses.data_for_client(result, caller.handshake),
        )

    async def close(self) -> None:
        """Close the connections to the application. Has a time limit."""
        if self._client is not None:
            await self._client.close()

    async def _call(
        self,
        kind: str,
        caller: Caller,
        fields: dict[str, object],
        decode_result: ObjectDecoder[R],
        convert: Callable[[R], T],
        *,
        refusals: bool = True,
    ) -> T | None:
        """Call an endpoint and return its result, converted; None when it has none.

        Args:
            kind: of the endpoint.
            caller: the client that the call is about.
            fields: of the body, after those about the client.
            decode_result: for the kind of result expected.
            convert: makes the return value of the result.
            refusals: whether `error` and `disconnect` in the response count.
        """
        endpoint = self._endpoints[kind]
        handshake = caller.handshake
        common: dict[str, object] = {
            "client": caller.client,
            "transport": handshake.transport,
            "protocol": handshake.protocol,
            "encoding": handshake.encoding,
        }
        if endpoint.includes_meta and caller.meta is not None:
            fields["meta"] = Raw(caller.meta.json)
        assert self._client is not None
        began = time.monotonic()
        try:
            async with asyncio.timeout(endpoint.timeout), endpoint.slots:
                # a header of the handshake wins: what a client writes must not replace what a
                # browser or a reverse proxy says
                headers = _among(endpoint.emulated, handshake.emulated)
                headers |= _among(endpoint.headers, handshake.headers)
                body = await self._client.post(
                    endpoint.url, headers, msgspec.json.encode(common | fields)
                )
            result = responses.read(body, decode_result, refusals=refusals)
            return None if result is None else convert(result)
        except TimeoutError:
            reason = f"no response within {endpoint.timeout:g} s"
        except responses.ProxyError as error:
            reason = str(error)
        about = {
            "client": caller.client,
            "user": caller.user,
            "duration": time.monotonic() - began,
        }
        logger.error("The %s failed: %s", endpoint, reason, extra=about)
        raise InternalError


def _among(names: Container[str], headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in names}


def _data_fields(handshake: Handshake, data: bytes) -> dict[str, object]:
    """Return the data of a client as a field of the body; no field for no data.

    Raises:
        InternalError: the data are not JSON.
    """
    if not data:
        return {}
    if handshake.encoding == "binary":
        return {"b64data": base64.b64encode(data).decode()}
    try:
        return {"data": Raw(payload.check(data).json)}
    except ValueError:
        logger.info("A client sent data that are not JSON, so no endpoint was called")
        raise InternalError from None
