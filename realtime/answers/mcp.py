"""Events of MCP servers, kept in channels, so that clients which lost their connection resume.

    store = EventStore()
    application = store.wrap(server.streamable_http_app(event_store=store))

The SDK of MCP names a stream by the ID of its request, which every session counts from the same
number. `wrap` learns the session of each request, and a session has a channel of its own: the event
ID of one session means nothing in another.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from realtime.answers.http import position_of
from realtime.answers.models import CHANNEL
from realtime.errors import EngineUnavailable, UnrecoverablePosition
from realtime.server_api.arguments import Position
from realtime.server_api.publishing import apublish
from realtime.server_api.queries import ahistory
from realtime.transports.asgi import Event, Receive, Scope, Send

logger = logging.getLogger("realtime.answers")

HEADER = b"mcp-session-id"
MAX_SESSIONS = 100_000
"""Sessions that a process remembers; events of older ones cannot be replayed."""


@dataclass(slots=True)
class _Session:
    """A session of a server."""

    channel: str
    is_complete: bool = True
    """Whether the engine has all its events: it may have been away."""


_session: ContextVar[_Session] = ContextVar("realtime_mcp_session")
"""The session whose request is served. What the session does later inherits it."""


class EventStore:
    """Keeps the events of an MCP server: `mcp.server.streamable_http.EventStore`."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, _Session] = {}

    def wrap(self, app: Any) -> Any:
        """Return the ASGI application of the server, with sessions that this store can tell apart.

        Args:
            app: what `streamable_http_app(event_store=store)` returned.
        """

        async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
            known = dict(scope.get("headers", ())).get(HEADER, b"")
            session = self._sessions.get(known) or _Session(f"{CHANNEL}mcp-{uuid.uuid4().hex}")
            _session.set(session)

            async def learn(event: Event) -> None:
                new = dict(event.get("headers", ())).get(HEADER)
                if new is not None and not known:
                    self._sessions[new] = session
                    if len(self._sessions) > MAX_SESSIONS:
                        del self._sessions[next(iter(self._sessions))]
                await send(event)

            await app(scope, receive, learn)

        return wrapped

    async def store_event(self, stream_id: str, message: Any) -> str:
        """Keep an event. Return its ID; "" while the engine is away: nothing can resume there.

        Args:
            message: a JSON-RPC message; None for the beginning of a stream.

        Raises:
            LookupError: the application is not wrapped.
        """
        session = _session.get()
        if message is not None:
            message = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
        try:
            position = await apublish(session.channel, {"stream": stream_id, "message": message})
        except EngineUnavailable as error:
            logger.warning("An event of an MCP server could not be kept: %s", error)
            session.is_complete = False
            return ""
        assert position is not None
        return f"{position.offset}.{position.epoch}"

    async def replay_events_after(
        self, last_event_id: str, send_callback: Callable[[Any], Awaitable[None]]
    ) -> str | None:
        """Send the events of a stream after one of them. Return the stream; None if there is none.

        Raises:
            EngineUnavailable: the engine is away.
            LookupError: the application is not wrapped.
        """
        from mcp.server.streamable_http import EventMessage
        from mcp.types import jsonrpc_message_adapter

        session, last = _session.get(), position_of(last_event_id)
        if last is None or last.offset < 1 or not session.is_complete:
            return None
        try:
            events = await ahistory(session.channel, since=Position(last.offset - 1, last.epoch))
        except UnrecoverablePosition:
            return None
        if not events or events[0]["offset"] != last.offset:
            return None
        stream: str = events[0]["data"]["stream"]
        for event in events[1:]:
            data = event["data"]
            if data["stream"] == stream and data["message"] is not None:
                message = jsonrpc_message_adapter.validate_python(data["message"])
                await send_callback(EventMessage(message, f"{event['offset']}.{last.epoch}"))
        return stream
