"""Checks: what must be true of the nodes and of the engine, during a run, at its end, and after it.

during   memory    what waits for a client is bounded, however slowly it reads
         owner     at most one node gives a session of SockJS to its client
end      presence  present are the clients that are there
         lists     listed are the nodes and channels that are served
         sizes     nodes count their subscribers right
         claims    each claim is of a session that its owner has
after    leaks     a node that has stopped left no task, timer, session or claim
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.channel_rules import CONTROL
from realtime.clients.client import Client
from realtime.clients.commands.listening import Listener
from realtime.engine.lists import Kind
from realtime.transports.sockjs.framing import SOCKJS
from tests.simulation import postgresql_kept

if TYPE_CHECKING:
    from tests.simulation.members import NodeProcess
    from tests.simulation.scenario import Service

CLAIM = f":owner:{SOCKJS.transport}.".encode()
"""Only keys of claims on sessions have it."""
TAKES_CLAIMS = {"a claim is lost", "Redis evicts a key"}
"""Faults that take a claim of which no node knows until it renews it."""
INTERVAL = 0.5
"""Seconds between two looks during a run."""


# during


def look(service: Service) -> None:
    """Check what must be true at every moment, and look again later."""
    if service.network.is_down:
        return
    owners: dict[str, str] = {}
    for member in service.nodes:
        if member.node is None or not member.process.alive:
            continue
        for connection in member.node._connections:
            if isinstance(connection, Client | Listener):
                _check_memory(service, member, connection)
        for name in member.open_sessions:
            if member.gives(name):
                if name in owners:
                    service.judge.fail(f"{owners[name]} and {member.name} give session {name}")
                owners[name] = member.name
    service.world.after(INTERVAL, look, service)


def _check_memory(service: Service, member: NodeProcess, connection: Client | Listener) -> None:
    outbox = connection.outbox
    queued, backlog = outbox._batch.size, connection.transport.backlog
    service.judge.most_unsent = max(service.judge.most_unsent, queued + backlog)
    if outbox.overflow is None:
        return  # it is closing: nothing is added
    most = outbox._most + outbox._reserved
    if queued > most or backlog > most:
        service.judge.fail(
            f"{queued} bytes are queued for {connection.id} at {member.name}, {backlog} have not"
            f" left, and the limit is {most}"
        )


# at the end


def check_end(service: Service) -> None:
    """Check what must be true when all faults are over."""
    _check_presence(service)
    _check_lists(service)
    _check_sizes(service)
    _check_claims(service)


def _check_presence(service: Service) -> None:
    for channel in [*service.kept, "kept:all"]:
        expected = {
            client.client_id
            for client in service.clients
            if channel in client.subscriptions and client.is_settled
        }
        expected |= _listening(service, channel)
        present = _present(service, channel)
        if present is not None and present != expected:
            service.judge.fail(
                f"present in {channel} and gone: {sorted(present - expected)}; there and not"
                f" present: {sorted(expected - present)}"
            )


def _listening(service: Service, channel: str) -> set[str]:
    """Return the IDs of listeners, which do not know them."""
    return {
        connection.id
        for member in service.nodes
        if member.node is not None
        for connection in member.node._connections
        if isinstance(connection, Listener) and channel in connection.session.subscriptions
    }


def _present(service: Service, channel: str) -> set[str] | None:
    if service.postgresql is not None:
        return postgresql_kept.present(service.postgresql, channel)
    if not service.shards:
        return None
    return _living(service, channel, service.keys.presence(channel)[1])


def _living(service: Service, channel: str, key: str) -> set[str]:
    """Return the entries that have not expired, by the key of their expiry."""
    now = service.world.unix_time() * 1000
    expiry = service.database_of(channel).values.get(key.encode(), {})
    return {member.decode() for member, at in expiry.items() if at > now}


def _check_lists(service: Service) -> None:
    if service.postgresql is not None:
        listed = postgresql_kept.nodes(service.postgresql)
    elif service.shards:
        listed = _living(service, CONTROL, service.keys.nodes[1])
    else:
        return
    expected = {member.node.uid for member in service.nodes if member.node is not None}
    if listed != expected:
        service.judge.fail(f"nodes {sorted(listed)} are listed, and {sorted(expected)} serve")
    channels: set[bytes] = set()
    if service.postgresql is not None:
        channels = postgresql_kept.channels(service.postgresql, expected)
    else:
        values = service.database_of(CONTROL).values
        for uid in expected:
            channels |= set(values.get(service.keys.list_of(Kind.CHANNELS, uid).encode(), ()))
    wanted = {
        channel.encode()
        for client in service.peers
        for channel in client.subscriptions
        if client.is_settled
    }
    if channels != wanted:
        service.judge.fail(f"channels {channels} are listed, and {wanted} have subscribers")


def _check_sizes(service: Service) -> None:
    """Check how many subscribers the nodes count."""
    nodes = [member.node for member in service.nodes if member.node is not None]
    there = [peer for peer in service.peers if peer.is_settled]
    for channel in {channel: None for peer in there for channel in peer.subscriptions}:
        feeds = [node.hub.feeds[channel] for node in nodes if channel in node.hub.feeds]
        size = sum(feed.size for feed in feeds)
        expected = sum(channel in peer.subscriptions for peer in there)
        if size != expected:
            service.judge.fail(f"{size} subscribers of {channel} are counted, and not {expected}")
    count = sum(node.subscriptions.count for node in nodes)
    if count != sum(len(peer.subscriptions) for peer in there):
        service.judge.fail(f"{count} subscriptions are counted")


def _claims(service: Service) -> dict[bytes, str]:
    """Return the claims on sessions: their keys, and the nodes."""
    if service.postgresql is not None:
        return postgresql_kept.claims(service.postgresql)
    claims: dict[bytes, str] = {}
    now = service.world.unix_time() * 1000
    for shard in service.shards:
        database = shard.master.database
        for key, value in database.values.items():
            if CLAIM in key and database.expiries.get(key, now) > now:
                claims[key] = value.decode()
    return claims


def check_claimed(service: Service) -> None:
    """Check that sessions are claimed, soon after the last fault: nodes claim what Redis lost."""
    if service.shards and not TAKES_CLAIMS & service.counts.keys():
        _check_claims(service, is_end=False)


def _check_claims(service: Service, *, is_end: bool = True) -> None:
    claims = _claims(service)
    for member in service.nodes:
        if member.node is None or member.node.cluster is None:
            continue
        if (sessions := member.sessions) is None:
            continue
        names = [sessions._claims._name(name) for name in sessions._sessions]
        if service.postgresql is not None:
            named = set(map(postgresql_kept.claim, names))
        else:
            named = {service.keys.owner(name).encode() for name in names}
        held = {key for key, uid in claims.items() if uid == member.node.uid}
        if named != held if is_end else not named <= held:
            service.judge.fail(f"{member.name} has sessions {named}, and claims {held}")


# after


def check_stopped(service: Service, member: NodeProcess, uid: str) -> None:
    """Check that a node that has stopped left nothing behind."""
    loop = member.process.loop
    left: list[object] = [*loop.tasks.keys() - member.serving, *loop.timers]
    left += member.process.greenlets
    left += member.open_sessions
    left += [key for key, owner in _claims(service).items() if owner == uid]
    if left:
        service.judge.fail(f"{member.name} left {left}")
