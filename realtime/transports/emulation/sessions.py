"""The sessions of one node, by name, and those of other nodes whose requests come to it.

Each session has one owner among the nodes: the one that got its first request. The others find the
owner by its claim, and relay.
"""

from __future__ import annotations

from collections.abc import Awaitable

from realtime.cluster.direct import NodeID
from realtime.errors import EngineUnavailable
from realtime.node.limits.admission import NotAdmitted
from realtime.node.node import Node
from realtime.transports.emulation.owning_client import Bearer
from realtime.transports.emulation.owning_node import Claims
from realtime.transports.emulation.relay_messages import (
    LISTS_DOUBTFUL,
    Attach,
    CheckReceiver,
    Deliver,
    Detach,
    RelayLink,
    RelayMessage,
    Release,
    WatchReceiver,
    WrittenFrames,
    answer_at_once,
    in_time,
)
from realtime.transports.emulation.remote_receiver import RemoteReceivers, on_deliver
from realtime.transports.emulation.remote_session import Relay, RemoteSession, SessionGoneError
from realtime.transports.emulation.response import SessionResponse
from realtime.transports.emulation.session import (
    INTERRUPTED,
    AnySession,
    EmulatedSession,
    Framing,
    NotOwnerError,
)


class Sessions:
    """Belongs to the event loop of its node."""

    def __init__(self, node: Node, framing: Framing) -> None:
        self._node = node
        self._framing = framing
        self._sessions: dict[str, EmulatedSession] = {}
        self._claims = Claims(node, framing.transport)
        self._link = RelayLink(node, framing.transport)
        self._receivers = RemoteReceivers(node, self._link, framing, self._find_claimed)
        self._relay = Relay(node, self._link, framing)
        self._link.on_message(self._on_message)
        node.interruptions.when_over.append(self._claims.renew_all)

    async def attach(self, name: str, receiver: SessionResponse, bearer: Bearer) -> AnySession:
        """Attach a receiver to a session; the first request of a session makes it.

        Args:
            bearer: the request.

        Raises:
            NotOwnerError: the session belongs to another client.
            EngineUnavailable: it cannot be known which node has the session.
            NotAdmitted: the session would be new, and the process takes no connection now.
        """
        if name not in self._sessions:
            owner = await self._own(name, bearer)
            if owner != self._node.uid:
                return await self._attach_at(owner, name, receiver, bearer)
        session = self._existing(name, bearer) or self._make(name, bearer)
        await session.attach(receiver)
        return session

    async def find(self, name: str, bearer: Bearer) -> AnySession | None:
        """Return the session that a request writes to; None if there is none.

        Arguments and errors are those of `attach`.
        """
        session = self._existing(name, bearer)
        if session is not None:
            return session
        began = self._node.loop.time()
        async with in_time(began):
            await self._link.open()
            owner = await self._claims.owner(name)
        if owner is None and self._node.outage.within(LISTS_DOUBTFUL):
            raise EngineUnavailable("sessions may not be claimed again")
        if owner is None or owner == self._node.uid:
            return None
        return RemoteSession(self._relay, owner, name, bearer, began)

    def _existing(self, name: str, bearer: Bearer) -> EmulatedSession | None:
        session = self._sessions.get(name)
        if session is not None and not session.is_of(bearer):
            raise NotOwnerError
        return session

    async def _own(self, name: str, bearer: Bearer) -> NodeID:
        """Return the owner of a session, which may be this node from now on."""
        async with self._claims.lock(name):
            await self._link.open()
            owner = await self._claims.claim(name)
            if owner == self._node.uid and name not in self._sessions:
                try:
                    self._make(name, bearer)
                except NotAdmitted:
                    await self._claims.drop(name, owner)
                    raise
        return owner

    async def _attach_at(
        self, owner: NodeID, name: str, receiver: SessionResponse, bearer: Bearer
    ) -> AnySession:
        session = RemoteSession(self._relay, owner, name, bearer, self._node.loop.time())
        try:
            await session.attach(receiver)
        except SessionGoneError as error:
            await self._claims.drop(name, owner)
            if error.__cause__ is None:  # the owner was about to forget the session
                return await self.attach(name, receiver, bearer)
            # the owner is dead, and with it a session that the client believes in
            if not receiver.finishing:
                receiver.write(self._framing.close(*INTERRUPTED))
                receiver.finish()
        return session

    def _make(self, name: str, bearer: Bearer) -> EmulatedSession:
        """Make a session; raises NotAdmitted."""
        self._node.admission.check(bearer.handshake.address)
        session = self._sessions[name] = EmulatedSession(
            self._node,
            self._framing,
            bearer.handshake,
            ended=lambda: self._ended(name),
            forget=lambda: self._forget(name),
            owner=bearer.begin(),
        )
        self._claims.keep(name)
        return session

    def _ended(self, name: str) -> None:
        """A session ended; requests still find it for a while."""
        if self._node.is_draining:  # the node will be gone when the session is forgotten
            self._claims.release(name)

    def _forget(self, name: str) -> None:
        del self._sessions[name]
        self._claims.release(name)

    async def _find_claimed(self, name: str) -> EmulatedSession | None:
        async with self._claims.lock(name):
            return self._sessions.get(name)

    def _on_message(self, sender: NodeID, message: RelayMessage) -> Awaitable[bytes] | None:
        match message:
            case WrittenFrames():
                self._relay.on_written(message)
            case Detach():
                self._receivers.on_detach(sender, message, self._sessions.get(message.session))
            case Release():
                self._receivers.on_release(sender, message)
            case Attach():
                return self._receivers.on_attach(sender, message)
            case Deliver():
                return on_deliver(self._sessions.get(message.session), message)
            case WatchReceiver():
                return answer_at_once(self._receivers.on_watch(sender, message))
            case CheckReceiver():
                return answer_at_once(message.receiver in self._relay.attached)
        return None
