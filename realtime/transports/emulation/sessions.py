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
            handshake: returns the handshake of the request; called if it matters.

        Raises:
            NotOwnerError: the session belongs to another auth session than the request's.
            EngineUnavailable: it cannot be known which node has the session.
            NotAdmitted: the session would be new, and the process takes no connection now.
        """
        session = self._existing(name, handshake) or self._make(name, self._admitted(handshake))
        await session.attach(receiver)
        return session

    async def find(self, name: str, handshake: Callable[[], Handshake]) -> AnySession | None:
        """Return the session that a request writes to; None if there is none.

        Arguments and errors are those of `attach`.
        """
        return self._existing(name, handshake)

    def _existing(self, name: str, handshake: Callable[[], Handshake]) -> Session | None:
        session = self._sessions.get(name)
        if session is not None:
            session.check_owner(lambda: self._node.hooks.auth_session_of(handshake()))
        return session

    def _admitted(self, handshake: Callable[[], Handshake]) -> Handshake:
        """Return the handshake of a new session; raises NotAdmitted."""
        opening = handshake()
        self._node.admission.check(opening.address)
        return opening

    def _make(self, name: str, handshake: Handshake) -> Session:
        session = self._sessions[name] = Session(
            self._node,
            self._framing,
            handshake,
            heartbeat_delay=self._heartbeat_delay,
            ended=lambda: self._ended(name),
            forget=lambda: self._forget(name),
            owner=self._node.hooks.auth_session_of(handshake),
        )
        return session

    def _ended(self, name: str) -> None:
        """A session ended; requests still find it for a while."""

    def _forget(self, name: str) -> None:
        del self._sessions[name]
