"""Member: a process of the service. It publishes, asks the nodes, and sends control messages.

`Node` is the subclass that serves clients. Other processes, such as workers, shells and WSGI
processes, are members only: they reach the clients of the nodes by way of the engine.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count

import msgspec
from msgspec.structs import replace

from realtime import tracing
from realtime.channel_rules import CONTROL, INTERNAL_OPTIONS, PENDING, namespace_of
from realtime.cluster import control
from realtime.cluster.control import (
    CONTROL_OPTIONS,
    BlockUser,
    ControlMessage,
    DisconnectSome,
    DisconnectUser,
    UnblockUser,
    Unsubscribe,
    UnsubscribeSome,
)
from realtime.cluster.survey import A, SurveyAnswer, SurveyQuestion, SurveyResult, collect
from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import Outgoing, Published, Store, Streams
from realtime.engine.lists import Kind
from realtime.engine.maps import KeyMode
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.errors import Disconnect, DisconnectForced, EngineUnavailable, LimitExceeded, NoReply
from realtime.metrics import Counters, Outage
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
    UserID,
)

logger = logging.getLogger("realtime.node")

NOTHING = Payload(b"null", b"null")

NOT_KEPT = ChannelOptions()
"""The options of a publication that skips history."""


class NewPublication(msgspec.Struct, frozen=True, gc=False):
    """A publication of the site or of the HTTP API, checked but not published."""

    channel: ChannelName
    data: Payload
    tags: Mapping[str, str] | None = None
    once: Once | None = None
    """Its idempotency key, if it has one."""
    skip_history: bool = False
    """Deliver it only: it is not kept, and has no position."""
    version: Version | None = None
    """The version of what it shows, if that has versions."""
    expect: StreamPosition | None = None
    """The top of the channel without which it is not published; the epoch "" is any."""
    after: Once | None = None
    """The key of the publication before it; see `Outgoing.after`."""
    key: str = ""
    """In a map, the key that it changes; it has no `skip_history`."""
    removed: bool = False
    """Whether it removes the key; the data are null."""
    key_mode: KeyMode = ""
    ttl: int | None = None
    """See `Outgoing.ttl`."""


class Member:
    """See the module. Its coroutines need an event loop only if those of its store do."""

    pipelines_publishes = False
    """Whether the next publish begins before the one before has ended: there is a round trip to
    wait for, and an event loop to wait in."""
    stopping = False
    """Whether this process stops, and takes no commands any more."""

    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.broker = store.broker
        self.presence = store.presence
        self.cluster = store.cluster
        self.lists = store.lists
        self.limits = store.limits
        self.seen = store.seen
        self.maps = store.maps
        self.uid = str(uuid.uuid4())
        self.spans = tracing.spans()
        """Makes spans; None without traces."""
        self.counters = Counters()
        self.outage = Outage()
        """Failures of commands and subscriptions because the engine is away."""
        self._now: Callable[[], float] = time.monotonic
        self._pause: Callable[[float], Awaitable[None]] = _pause
        self.on_wake_up: Callable[[], object] = bool
        """Wakes the relay of this process, when the node subscribes to wake-ups."""
        self._publications = count(1)
        self._uid_prefix = self.uid.replace("-", "")[:20]

    # publishing

    async def publish(
        self,
        channel: ChannelName,
        data: Payload,
        options: ChannelOptions,
        info: ClientInfo | None = None,
    ) -> StreamPosition | None:
        """Publish to the subscribers of a channel at every node.

        Args:
            info: the client that publishes, if it is one.

        Returns:
            The position of the publication; None without history.

        Raises:
            EngineUnavailable: The engine did not answer, or refused.
        """
        published = await self._publish(channel, self._publication(data, options, info), options)
        return published.position

    async def put(
        self,
        channel: ChannelName,
        key: str,
        data: Payload | None,
        options: ChannelOptions,
        info: ClientInfo | None = None,
    ) -> Published:
        """As `publish`, change one key of a map. `data`: None removes the key."""
        publication = self._publication(data or NOTHING, options, info)
        changed = replace(publication, key=key, removed=data is None)
        return await self._publish(channel, changed, options)

    async def _publish(
        self, channel: ChannelName, publication: Publication, options: ChannelOptions
    ) -> Published:
        outgoing = Outgoing(channel, publication, options)
        publish = self.broker.publish if self.spans is None else self._publish_traced
        published = await publish(outgoing)
        if publication.info is None:
            self.counters.published_by_server += 1
        else:
            self.counters.published_by_clients += 1
        return published

    async def publish_new(self, new: NewPublication, options: ChannelOptions) -> Published:
        """As `publish`, for a publication of the site or of the HTTP API."""
        publish = self.broker.publish if self.spans is None else self._publish_traced
        published = await publish(self._outgoing(new, options))
        self.counters.published_by_server += 1
        return published

    async def publish_many(
        self,
        publications: Sequence[tuple[NewPublication, ChannelOptions]],
        streams: Streams | None = None,
    ) -> list[Published | EngineUnavailable]:
        """Publish several; see `Streams.publish_many`. `streams`: in place of the broker's."""
        outgoing = [self._outgoing(new, options) for new, options in publications]
        with nullcontext(outgoing) if self.spans is None else self._span(outgoing) as traced:
            results = await (streams or self.broker).publish_many(traced)
        self.counters.published_by_server += sum(
            not isinstance(r, EngineUnavailable) for r in results
        )
        return results

    async def _publish_traced(self, outgoing: Outgoing) -> Published:
        with self._span([outgoing]) as [traced]:
            return await self.broker.publish(traced)

    @contextmanager
    def _span(self, publications: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
        """Make the span of publishing. Yield the publications with its ID."""
        assert self.spans is not None
        namespaces = {namespace_of(each.channel, self.config) for each in publications}
        namespace = namespaces.pop() if len(namespaces) == 1 else ""
        with self.spans.publish(namespace, len(publications)) as traceparent:
            yield [
                replace(each, publication=replace(each.publication, traceparent=traceparent))
                for each in publications
            ]

    def _outgoing(self, new: NewPublication, options: ChannelOptions) -> Outgoing:
        if new.skip_history:
            options = NOT_KEPT
        publication = self._publication(new.data, options, None, new.tags)
        if new.key:
            publication = replace(publication, key=new.key, removed=new.removed)
        expect: StreamPosition | int | None = new.expect
        if isinstance(expect, StreamPosition) and not expect.epoch:
            expect = expect.offset
        return Outgoing(
            new.channel,
            publication,
            options,
            new.once,
            new.version,
            expect,
            new.after,
            new.key_mode,
            new.ttl,
        )

    def _publication(
        self,
        data: Payload,
        options: ChannelOptions,
        info: ClientInfo | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Publication:
        uid = f"{self._uid_prefix}{next(self._publications):x}" if options.keeps_history else ""
        return Publication(data, info, 0, uid, tags)

    async def wake_relays(self) -> None:
        """Wake the relays of pending publications at every node; raises EngineUnavailable."""
        await self.broker.publish(Outgoing(PENDING, Publication(NOTHING), INTERNAL_OPTIONS))

    # control messages; all raise EngineUnavailable when they cannot be sent

    async def unsubscribe_user(
        self, user: UserID, channel: ChannelName, *, client: ClientID = "", session: str = ""
    ) -> None:
        """Unsubscribe a user's connections from a channel; "" means from all their channels.

        Args:
            client: only this connection; "" for every one.
            session: only the connection with this session; "" for every one.
        """
        message: ControlMessage = Unsubscribe(user, channel)
        if client or session:
            message = UnsubscribeSome(user=user, client=client, session=session, channel=channel)
        await self.send_control(message)

    async def ask_again(self, user: UserID, channel: ChannelName) -> None:
        """Ask the site again about a user's subscriptions to a channel; "" means to each."""
        await self.send_control(Unsubscribe(user, channel, ask=True))

    async def disconnect_user(
        self,
        user: UserID,
        disconnect: Disconnect | None = None,
        *,
        client: ClientID = "",
        session: str = "",
        keep: Sequence[ClientID] = (),
    ) -> None:
        """Close a user's connections at every node. `client` and `session` as `unsubscribe_user`.

        Args:
            disconnect: code and reason.
            keep: connections that stay.
        """
        disconnect = disconnect or DisconnectForced()
        message: ControlMessage = DisconnectUser(user, disconnect.code)
        if client or session or keep or type(disconnect) is Disconnect:
            message = DisconnectSome(
                user=user,
                client=client,
                session=session,
                code=disconnect.code,
                reason=disconnect.reason,
                reconnect=disconnect.reconnect,
                keep=tuple(keep),
            )
        await self.send_control(message)

    async def block_user(self, user: UserID, until: float) -> None:
        """Close a user's connections at every node, and refuse new ones.

        Args:
            until: when that ends, Unix seconds.

        Raises:
            LimitExceeded: too many users are blocked.
        """
        message = BlockUser(user, until)
        if self.limits is not None:
            blocking = await self.limits.block({user: until})
            if not blocking.number:
                raise LimitExceeded
            message = replace(message, version=blocking.version)
        await self._send_blocks(message)

    async def unblock_user(self, user: UserID) -> None:
        """Let a user connect again."""
        message = UnblockUser(user)
        if self.limits is not None:
            message = replace(message, version=(await self.limits.block({user: 0})).version)
        await self._send_blocks(message)

    async def _send_blocks(self, message: BlockUser | UnblockUser) -> None:
        try:
            await self.send_control(message)
        except NoReply:
            raise
        except EngineUnavailable as error:
            raise NoReply(f"kept, and nodes learn of it within seconds: {error}") from None

    async def blocked(self) -> Mapping[UserID, float]:
        """Return the users who are blocked, and when that ends, Unix seconds."""
        listed = None if self.limits is None else await self.limits.blocked()
        return {} if listed is None else listed.ends

    async def send_control(self, message: ControlMessage) -> None:
        """Send a control message to every node."""
        message = replace(message, origin=self.uid)
        publication = self._publication(control.encode(message), CONTROL_OPTIONS)
        await self.broker.publish(Outgoing(CONTROL, publication, CONTROL_OPTIONS))

    # the cluster; all raise EngineUnavailable

    async def nodes(self) -> list[NodeInfo]:
        """Return the nodes that are alive, by name."""
        alive = [node.info() for node in await self.statuses() if node.alive]
        return sorted(alive, key=lambda node: node.name)

    async def statuses(self) -> list[NodeStatus]:
        """Return the nodes that are alive or died a short time ago, in no order."""
        return [] if self.cluster is None else await self.cluster.statuses()

    async def silent(self) -> list[str]:
        """Return the names of the nodes that are listed and send no heartbeats, sorted.

        Such a node hangs, is cut off, or died. Its clients may still be connected.
        """
        return sorted(node.name for node in await self.statuses() if not node.alive)

    async def channels(self) -> list[ChannelName]:
        """Return the channels that have a subscriber at any node, in no order."""
        return list(await self.lists.names(Kind.CHANNELS))

    async def survey(self, question: SurveyQuestion, kind: type[A]) -> SurveyResult[A]:
        """Ask every node that is listed; those that do not answer in time are missing.

        The question gets the ID of this member, so that it does not answer twice.
        The survey does not wait for silent nodes: they would hold up every one for five minutes.
        """
        question = msgspec.structs.replace(question, origin=self.uid, survey=uuid.uuid4().hex)
        statuses = await self.statuses()
        waiting = {node.uid: node.name for node in statuses if node.alive}
        silent = {node.uid: node.name for node in statuses if not node.alive}
        answers: dict[str, A] = {}
        own = await self._answer(question)
        if isinstance(own, kind):
            answers[own.node] = own
            del waiting[own.node]
        if waiting and self.cluster is not None:
            await collect(
                self.cluster, question, kind, waiting, answers, now=self._now, pause=self._pause
            )
        missing = [name for uid, name in (waiting | silent).items() if uid not in answers]
        return SurveyResult(list(answers.values()), sorted(missing))

    async def _answer(self, question: SurveyQuestion) -> SurveyAnswer | None:
        """Answer a survey for this process; None if it serves no clients."""
        return None


async def _pause(seconds: float) -> None:
    time.sleep(seconds)
