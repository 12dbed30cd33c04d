"""Wishes: what the server API was asked for. One that was acknowledged comes true everywhere.

A wish is about connections: those that the user has when the call begins. Each of them is told, or
ends, sooner or later: a node that is cut off hears of it when it is back. At the node that was
asked it has happened before the call returns:

    called ──► acknowledged ──► told, or the connection has ended
                    └─ from here on the node that was asked delivers nothing that begins later

Only a Redis that loses data may lose what other nodes have not heard of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from realtime.clients.client import Client
from realtime.clients.session import Subscription
from realtime.errors import Disconnect
from realtime.node.node import Node
from tests.simulation.clients import SimulatedClient
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.members import NodeProcess
    from tests.simulation.scenario import Service


@dataclass(slots=True)
class _Told:
    """A client that has to be told."""

    client: SimulatedClient
    run: int
    channel: str
    """"" for a disconnect."""
    entries: int

    @property
    def is_due(self) -> bool:
        if self.client.run != self.run:
            return False
        subscription = self.client.subscriptions.get(self.channel)
        if subscription is None:
            return True
        return subscription.active and subscription.entries == self.entries

    def __str__(self) -> str:
        channel = f" from {self.channel}" if self.channel else ""
        return f"{self.client.name}, to be taken{channel}"


@dataclass(slots=True)
class _Held:
    """What a node has of it: a subscription, or a connection."""

    process: Process
    connection: Client
    channel: str
    subscription: Subscription | None

    @property
    def is_due(self) -> bool:
        session = self.connection.session
        if session.closing or not self.process.alive:
            return False
        return self.subscription is None or session.is_subscribed(self.channel, self.subscription)

    def __str__(self) -> str:
        return f"connection {self.connection.id} of {self.connection.user} {self.channel}"


class Wishes:
    """See the module."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._acknowledged: list[_Told | _Held] = []

    async def unsubscribe(self, member: NodeProcess, node: Node, user: str, channel: str) -> None:
        """Unsubscribe a user at a node."""
        told, here, elsewhere = self._begin(member, user, channel)
        await node.unsubscribe_user(user, channel)
        self._acknowledge(member, told, here, elsewhere)

    async def disconnect(self, member: NodeProcess, node: Node, user: str, why: Disconnect) -> None:
        """Disconnect a user at a node."""
        told, here, elsewhere = self._begin(member, user, "")
        await node.disconnect_user(user, why)
        self._acknowledge(member, told, here, elsewhere)

    def _begin(
        self, member: NodeProcess, user: str, channel: str
    ) -> tuple[list[_Told], list[_Held], list[_Held]]:
        """Return whom it is about: clients, and what this node and the others have of them."""
        service = self._service
        told = [
            _Told(client, client.run, channel, client.entries(channel))
            for client in service.clients
            if client.name == user and client.is_in(channel)
        ]
        here, elsewhere = [], []
        for other in service.nodes:
            held = self._held(other, user, channel)
            if other is member:
                here += held
            else:
                elsewhere += held
        return told, here, elsewhere

    @staticmethod
    def _held(member: NodeProcess, user: str, channel: str) -> list[_Held]:
        if member.node is None:
            return []
        process, held = member.process, []
        for connection in member.node.hub.connections(user):
            assert isinstance(connection, Client)
            if not channel:
                held.append(_Held(process, connection, "", None))
                continue
            session = connection.session
            if (subscription := session.subscriptions.get(channel)) is not None:
                held.append(_Held(process, connection, channel, subscription))
            if (pending := session.pending.get(channel)) is not None:
                held.append(_Held(process, connection, channel, pending.subscription))
        return held

    def _acknowledge(
        self, member: NodeProcess, told: list[_Told], here: list[_Held], elsewhere: list[_Held]
    ) -> None:
        judge = self._service.judge
        about = ", ".join(map(str, [*told, *here, *elsewhere]))
        judge.note(f"{member.name} has acknowledged the end of: {about}")
        for held in here:
            if held.is_due:
                judge.fail(f"{held} goes on at {member.name}, which has acknowledged its end")
        ids = {held.connection.id for held in here}
        for each in told:
            if each.is_due and each.client.client_id in ids:
                judge.forbid(each.client.name, each.channel)
        self._acknowledged += [*told, *here, *elsewhere]

    def lose(self) -> None:
        """Forget what was acknowledged: Redis loses data."""
        self._acknowledged.clear()

    def check(self) -> None:
        """Check that all came true, when all faults are over."""
        for each in self._acknowledged:
            if each.is_due:
                self._service.judge.fail(f"the server API acknowledged, and it goes on: {each}")
