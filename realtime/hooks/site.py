"""The hooks of a site behind the node's contract: functions, endpoints and login sessions.

- connect: the endpoint if one is configured, otherwise the hook; then the login session, for a
  client that neither of them knows.
- refresh: the login session that identified the client, otherwise as for connect.
- channels and methods: the hook that is registered for one, otherwise the endpoint; see also
  `deciding`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from realtime import channel_rules, payload
from realtime.config.channel_types import ChannelTypes
from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    BadRequest,
    Error,
    InternalError,
    MethodNotFound,
    NotAvailable,
    PermissionDenied,
)
from realtime.hooks import answers, login
from realtime.hooks.deciding import Deciding
from realtime.hooks.login import Logins
from realtime.hooks.registry import Registry
from realtime.hooks.requests import (
    ConnectRequest,
    MapPutRequest,
    MessageRequest,
    PublishRequest,
    RefreshRequest,
    Request,
    RPCRequest,
    SubscribeRequest,
)
from realtime.hooks.runner import Connections, Runner, name_of, own_connections
from realtime.metrics import Durations
from realtime.node.hooks import (
    Caller,
    Decider,
    Handshake,
    Hooks,
    Identity,
    KeyChange,
    Permission,
    Refreshed,
)
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, UserID
from realtime.proxy.endpoints import Endpoints
from realtime.tracing import Spans

logger = logging.getLogger("realtime.hooks")

T = TypeVar("T")

GROUPS = (("connect", "refresh"), ("subscribe", "publish", "map_put"), ("rpc", "message"))
"""Kinds of hooks that share `hook_workers` threads. So clients connect while methods are slow."""


class SiteHooks(Hooks):
    """See `node.hooks.Hooks`. Belongs to one event loop."""

    def __init__(
        self,
        config: Config,
        registry: Registry,
        connections: Connections = own_connections,
        spans: Spans | None = None,
    ) -> None:
        """
        Args:
            config: the options in force.
            registry: the hooks of the site.
            connections: surrounds each call, for the database connections of its thread.
            spans: traces calls; None: they have no spans.
        """
        self.wants_handshake = hooks_needed(config, registry)
        self._config = config
        self._registry = registry
        self._deciding = Deciding(registry, config)
        self._spans = spans

        self._runners: dict[str, Runner] = {}
        for kinds in GROUPS:
            runner = Runner(config.hook_workers, config.hook_timeout, connections)
            self._runners |= dict.fromkeys(kinds, runner)
        self._endpoints = Endpoints(config)
        self.emulated_headers = self._endpoints.emulated_headers
        self._logins = None
        self._allowed_origins = config.allowed_origins
        self.site_headers = login.site_headers()
        self._reader: Runner | None = None
        if config.session_authentication:
            workers = max(2, config.hook_workers // 2)
            self._reader = Runner(workers, config.hook_timeout, connections)
            self._logins = Logins(
                self._runners["connect"], registry, config.allowed_origins, workers, self._reader
            )
        self.refreshes = self._endpoints.has("refresh")
        self.wants_messages = "message" in registry.single
        self.seconds: Mapping[str, Durations] = {kind: Durations() for kind in self._runners}

    # connections

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        identity = None
        if self._endpoints.has("connect"):
            identity = await self._timed(
                "connect", self._endpoints.connect(caller, data, name, version)
            )
        elif (function := self._registry.single.get("connect")) is not None:
            request = ConnectRequest(**_of(caller), data=_decoded(data), name=name, version=version)
            identity = await self._call("connect", function, request, answers.identity)
            if identity is not None and "refresh" in self._registry.single:
                identity = msgspec.structs.replace(identity, server_side_refresh=True)
        if identity is None and self._logins is not None:
            identity = await self._logins.identify(caller)
        return identity

    async def refresh(self, caller: Caller, auth_session: str) -> Refreshed | None:
        if auth_session and self._logins is not None:
            return await self._logins.refresh(caller, auth_session)
        if self._endpoints.has("refresh"):
            return await self._timed("refresh", self._endpoints.refresh(caller))
        function = self._registry.single.get("refresh")
        if function is None:
            return None
        request = RefreshRequest(**_of(caller))
        return await self._call(
            "refresh", function, request, lambda answer: answers.refresh(answer, caller.user)
        )

    def auth_session_of(self, handshake: Handshake) -> str:
        return "" if self._logins is None else self._logins.auth_session_of(handshake)

    def trusts_page(self, handshake: Handshake) -> bool:
        # any hook, and most endpoints, may read cookies
        return login.trusts(handshake, self._allowed_origins)

    def auth_session_ended(self, user: UserID, auth_session: str) -> None:
        if self._logins is not None:
            self._logins.ended(user, auth_session)

    # channels

    def decides(self, channel: ChannelName, options: ChannelOptions) -> bool:
        if not self._registry.subscribe:
            return options.proxy_subscribe
        return self._deciding.decider("subscribe", channel, options) is not Decider.NONE

    async def subscribe(self, caller: Caller, channel: ChannelName, token: str) -> Permission:
        entry = self._registry.find(self._registry.subscribe, channel)
        if entry is None:
            if not channel_rules.options_of(channel, self._config).proxy_subscribe:
                raise PermissionDenied  # its namespace has hooks
            if self._endpoints.has("subscribe"):
                work = self._endpoints.subscribe(caller, channel, token)
                return Permission(await self._timed("subscribe", work))
            raise NotAvailable
        function, params = entry
        request = SubscribeRequest(**_of(caller), channel=channel, params=params, token=token)
        return await self._call("subscribe", function, request, answers.permission, caller)

    def publish(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, data: Payload
    ) -> Coroutine[Any, Any, Payload]:
        types = self._config.types
        if types is None:  # without a coroutine of its own
            return self._answer(caller, channel, options, data)
        return self._checked(types, caller, channel, options, data)

    async def _checked(
        self,
        types: ChannelTypes,
        caller: Caller,
        channel: ChannelName,
        options: ChannelOptions,
        data: Payload,
    ) -> Payload:
        """Return what `_answer` does, and check the data before and after it."""
        await self._accept(types, caller, channel, data)
        answer = await self._answer(caller, channel, options, data)
        if answer is not data:
            self._check_answer(types, channel, answer)
        return answer

    async def _accept(
        self, types: ChannelTypes, caller: Caller, channel: ChannelName, data: Payload
    ) -> None:
        found = types.of_clients(channel)
        if found is not None and found.may_query:
            await self._runners["publish"].run(found.accept, data, caller=caller)
        elif found is not None:
            found.accept(data)

    def _check_answer(self, types: ChannelTypes, channel: ChannelName, answer: Payload) -> None:
        try:
            types.check_sent(channel, answer)
        except Error as error:
            text = "The hook for %r gave an answer of another type: %s"
            logger.error(text, channel, error.message)
            raise InternalError from None

    async def _answer(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, data: Payload
    ) -> Payload:
        """Return what the site publishes in place of the data that a client sent."""
        entry = self._registry.find(self._registry.publish, channel)
        if entry is None:
            if not options.proxy_publish:
                if self._registry.publish and self._deciding.is_closed("publish", channel):
                    raise PermissionDenied
                return data
            if self._endpoints.has("publish"):
                return await self._timed("publish", self._endpoints.publish(caller, channel, data))
            raise NotAvailable
        function, params = entry
        request = PublishRequest(
            **_of(caller), channel=channel, data=_decoded(data.raw), params=params
        )
        return await self._call(
            "publish", function, request, lambda answer: answers.published(answer, data), caller
        )

    async def put(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, change: KeyChange
    ) -> KeyChange:
        types = self._config.types
        if types is not None and change.data is not None:
            await self._accept(types, caller, channel, change.data)
        answer = await self._put(caller, channel, options, change)
        if types is not None and answer.data is not None and answer.data is not change.data:
            self._check_answer(types, channel, answer.data)
        return answer

    async def _put(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, change: KeyChange
    ) -> KeyChange:
        """Return the change that the site makes of the change of a client."""
        entry = self._registry.find(self._registry.map_put, channel)
        if entry is None:
            if not options.proxy_publish:
                if self._deciding.is_closed("map_put", channel):
                    raise PermissionDenied
                return change
            if self._endpoints.has("publish"):
                return await self._timed("publish", self._endpoints.put(caller, channel, change))
            raise NotAvailable
        function, params = entry
        data = change.data
        request = MapPutRequest(
            **_of(caller),
            channel=channel,
            key=change.key,
            data=None if data is None else _decoded(data.raw),
            removed=data is None,
            params=params,
        )
        return await self._call(
            "map_put", function, request, lambda answer: answers.put(answer, change), caller
        )

    # methods and messages

    async def rpc(self, caller: Caller, method: str, data: bytes) -> Payload | None:
        function = self._registry.methods.get(method)
        if function is None:
            if self._endpoints.has("rpc"):
                return await self._timed("rpc", self._endpoints.rpc(caller, method, data))
            raise MethodNotFound if self._registry.methods else NotAvailable
        request = RPCRequest(**_of(caller), method=method, data=_decoded(data))
        return await self._call("rpc", function, request, answers.optional, caller)

    async def message(self, caller: Caller, data: bytes) -> None:
        function = self._registry.single.get("message")
        if function is not None:
            request = MessageRequest(**_of(caller), data=_decoded(data))
            await self._call("message", function, request, lambda answer: None, caller)

    async def close(self) -> None:
        runners = {*self._runners.values()}
        if self._reader is not None:
            runners.add(self._reader)
        await asyncio.gather(*(runner.close() for runner in runners))
        await self._endpoints.close()

    async def _call(
        self,
        kind: str,
        function: Callable[..., Any],
        request: Request,
        convert: Callable[[Any], T],
        caller: Caller | None = None,
    ) -> T:
        """Call a hook and return its answer, converted.

        Args:
            kind: of the hook.
            function: the hook.
            request: its argument.
            convert: what makes the answer usable.
            caller: the client that sent the command; None if the service itself asks.

        Raises:
            Error, Disconnect: the hook raised it.
            LimitExceeded: too many calls of this client or user take too long.
            InternalError: the hook failed, or its answer cannot be used; the log has the reason.
        """

        def read(answer: Any) -> T:
            try:
                return convert(answer)
            except (TypeError, ValueError) as error:
                name = name_of(function)
                logger.error("%s gave an answer that cannot be used: %s", name, error)
                raise InternalError from None

        work = self._runners[kind].run(function, request, read=read, caller=caller)
        answer: T = await self._timed(kind, work)
        return answer

    async def _timed(self, kind: str, work: Awaitable[T]) -> T:
        """Await the answer of the site to a question of a kind, and count how long it took."""
        began = time.perf_counter()
        try:
            if self._spans is None:
                return await work
            with self._spans.hook(kind):
                return await work
        finally:
            self.seconds[kind].add(time.perf_counter() - began)


def _of(caller: Caller) -> dict[str, Any]:
    return {
        "client": caller.client,
        "user": caller.user,
        "handshake": caller.handshake,
        "encoded_meta": caller.meta,
    }


def _decoded(data: bytes) -> Any:
    """Return the data of a client as Python objects; None for none.

    Raises:
        BadRequest: the data are not JSON.
    """
    if not data:
        return None
    try:
        # in the form for JSON clients, because browsers write lone surrogates
        return msgspec.json.decode(payload.check(data).json)
    except (ValueError, RecursionError):
        raise BadRequest from None


def hooks_needed(config: Config, registry: Registry) -> bool:
    """Return whether the site has any hook; otherwise the options alone decide."""
    has_endpoint = any(proxy.endpoint for proxy in config.proxies.values())
    return bool(registry) or config.session_authentication or has_endpoint


def site_hooks(
    config: Config, registry: Registry, connections: Connections, spans: Spans | None
) -> Hooks | None:
    """Return what of the site decides at a node; None: the options alone. See `SiteHooks`."""
    if config.types is None and not hooks_needed(config, registry):
        return None
    return SiteHooks(config, registry, connections, spans)
