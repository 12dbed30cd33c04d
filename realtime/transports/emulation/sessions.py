"""The sessions of one node, by name."""

from __future__ import annotations

from realtime.node.node import Node
from realtime.transports.emulation.framing import Framing
from realtime.transports.emulation.ownership import Bearer
from realtime.transports.emulation.response import Response
from realtime.transports.emulation.session import AnySession, NotOwnerError, Session


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

    async def attach(self, name: str, receiver: Response, bearer: Bearer) -> AnySession:
        """Attach a receiver to a session; the first request of a session makes it.

        Args:
            bearer: the request.

        Raises:
            NotOwnerError: the session belongs to another client.
            EngineUnavailable: it cannot be known which node has the session.
            NotAdmitted: the session would be new, and the process takes no connection now.
        """
        session = self._existing(name, bearer) or self._make(name, bearer)
        await session.attach(receiver)
        return session

    async def find(self, name: str, bearer: Bearer) -> AnySession | None:
        """Return the session that a request writes to; None if there is none.

        Arguments and errors are those of `attach`.
        """
        return self._existing(name, bearer)

    def _existing(self, name: str, bearer: Bearer) -> Session | None:
        session = self._sessions.get(name)
        if session is not None and not session.is_of(bearer):
            raise NotOwnerError
        return session

    def _make(self, name: str, bearer: Bearer) -> Session:
        """Make a session; raises NotAdmitted."""
        self._node.admission.check(bearer.handshake.address)
        session = self._sessions[name] = Session(
            self._node,
            self._framing,
            bearer.handshake,
            heartbeat_delay=self._heartbeat_delay,
            ended=lambda: self._ended(name),
            forget=lambda: self._forget(name),
            owner=bearer.begin(),
        )
        return session

    def _ended(self, name: str) -> None:
        """A session ended; requests still find it for a while."""

    def _forget(self, name: str) -> None:
        del self._sessions[name]
