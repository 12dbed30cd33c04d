"""The sessions of one node, by name."""

from __future__ import annotations

from collections.abc import Callable

from realtime.node.hooks import Handshake
from realtime.node.node import Node
from realtime.transports.emulation.framing import Framing
from realtime.transports.emulation.response import Response
from realtime.transports.emulation.session import AnySession, Session


class Sessions:
    """The sessions of a node that no other node knows. Belongs to its event loop."""

    def __init__(self, node: Node, framing: Framing, heartbeat_delay: float) -> None:
        """
        Args:
            heartbeat_delay: see `Session`.
        """
        self._node = node
        self._framing = framing
        self._heartbeat_delay = heartbeat_delay
        self._sessions: dict[str, Session] = {}

    async def attach(
        self, name: str, receiver: Response, handshake: Callable[[], Handshake]
    ) -> AnySession:
        """Attach a receiver to a session; the first request of a session makes it.

        Args:
            handshake: returns the handshake of the session's client; called if it is made.

        Raises:
            EngineUnavailable: it cannot be known which node has the session.
        """
        session = self._sessions.get(name) or self._make(name, handshake())
        await session.attach(receiver)
        return session

    async def find(self, name: str) -> AnySession | None:
        """Return a session; None if there is none.

        Raises:
            EngineUnavailable: it cannot be known which node has the session.
        """
        return self._sessions.get(name)

    def _make(self, name: str, handshake: Handshake) -> Session:
        session = self._sessions[name] = Session(
            self._node,
            self._framing,
            handshake,
            heartbeat_delay=self._heartbeat_delay,
            ended=lambda: self._ended(name),
            forget=lambda: self._forget(name),
        )
        return session

    def _ended(self, name: str) -> None:
        """A session ended; requests still find it for a while."""

    def _forget(self, name: str) -> None:
        del self._sessions[name]
