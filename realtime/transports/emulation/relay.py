"""Sessions and requests that are not at the same node. See `letters` for what is said.

Either side may die. The owner takes a receiver that nobody watches any more for interrupted,
and the acting node ends its response when the owner does not answer; in both cases the client
learns that its session is interrupted, opens another one, and recovers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from realtime.cluster.direct import NodeID
from realtime.errors import Disconnect, EngineUnavailable
from realtime.node.node import Node
from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay_messages import (
    SUBJECT,
    Attach,
    Check,
    Deliver,
    Detach,
    Release,
    Watch,
)
from realtime.transports.emulation.response import Receiver, Response
from realtime.transports.emulation.session import INTERRUPTED, Session
from realtime.transports.sockjs import framing

WATCH_INTERVAL = 4.0
"""Seconds between two looks at the other side."""
ANSWER_PATIENCE = 2.0
"""Seconds another node has to answer."""
CHECK_PATIENCE = ANSWER_PATIENCE / 2
"""Seconds it has to say whether a receiver is there: who asks has to answer, too."""
DELIVER_PATIENCE = 10.0
"""Seconds it has to take what a client sent: it may have to handle what came before. Where that
takes long, it is asked whether it is there at all."""
UNWATCHED = 2 * WATCH_INTERVAL + ANSWER_PATIENCE
"""Seconds after which a receiver nobody watches is given up."""


class SessionGoneError(Exception):
    """Its owner does not have the session any more, or is no more itself."""


class DistantReceiver:
    """At the owner: a receiver whose response is written by another node. See `Receiver`."""

    def __init__(
        self,
        node: Node,
        session: Session,
        acting: NodeID,
        number: int,
        limit: int,
        ended: Callable[[], object],
    ) -> None:
        """`acting` and `number`: the node that writes the response, and what it calls it.
        `ended`: called at the end of this."""
        self._ended = ended
        self._polls = limit == 0
        self._node = node
        self._session = session
        self._acting = acting
        self._number = number
        self._room = limit
        self._frames: list[bytes] = []
        self._letters = 0
        self._sending = False
        self._unwatched = node.timers.timer(lambda: self.end(interrupted=True))
        self.finishing = False
        self.watched()

    def write(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._room -= len(frame)
        if self._room <= 0:
            self.finishing = True
        self._send_soon()

    def finish(self) -> None:
        self.finishing = True
        self._send_soon()

    async def is_there(self) -> bool:
        try:
            answer = await self._node.post.ask(
                self._acting, SUBJECT, relay_messages.encode(Check(self._number)), CHECK_PATIENCE
            )
        except EngineUnavailable:
            answer = relay_messages.NO
        if answer != relay_messages.YES:
            self.end(interrupted=True)
        return answer == relay_messages.YES

    def watched(self) -> None:
        """The acting node is there."""
        self._unwatched.set(self._node.timers.now() + UNWATCHED)

    def release(self) -> None:
        """The acting node is about to end; the client asks another one then."""
        if not self.finishing:
            if self._polls:
                self._frames.append(framing.HEARTBEAT)  # a polling response has a frame
            self.finish()

    def end(self, *, interrupted: bool) -> None:
        """Take no more."""
        self.finishing = True
        self._ended()
        self._unwatched.cancel()
        self._session.detach(self, interrupted=interrupted)

    def _send_soon(self) -> None:
        if not self._sending:
            self._sending = True
            self._node.spawn(self._send())

    async def _send(self) -> None:
        """Send what is written; one letter after the other, for a layer may mix them up."""
        last = False
        while not last:
            frames, self._frames = self._frames, []
            last = self.finishing
            letter = relay_messages.Written(
                self._number, self._letters, [frame.decode() for frame in frames], last
            )
            self._letters += 1
            try:
                await self._node.post.send(self._acting, SUBJECT, relay_messages.encode(letter))
            except EngineUnavailable:
                self.end(interrupted=True)
                return
            if not (self._frames or self.finishing):
                self._sending = False
                return
        self.end(interrupted=False)


class ActingResponse:
    """At the acting node: a response that a session of another node writes to.

    To its node it is a connection as others are.
    """

    id = ""

    def __init__(self, receiver: Receiver, release: Callable[[], None]) -> None:
        """`release`: has the owner end the response."""
        self._receiver = receiver
        self._release = release
        self._letters = 0
        self.is_interrupted = False

    def written(self, letter: relay_messages.Written) -> None:
        """The owner has written."""
        if self._receiver.finishing:
            return  # it was interrupted, and nothing follows that
        if letter.number != self._letters:
            self.interrupted()  # one got lost
            return
        self._letters += 1
        for frame in letter.frames:
            self._receiver.write(frame.encode())
        if letter.last:
            self._receiver.finish()

    def close(self, disconnect: Disconnect | None) -> None:
        """This node is about to end."""
        self._release()

    def interrupted(self) -> None:
        """Say that nothing more will come."""
        if not self._receiver.finishing:
            self.is_interrupted = True
            self._receiver.write(INTERRUPTED)
            self._receiver.finish()


class DistantSession:
    """At the acting node: a session of another one. See `AnySession`."""

    def __init__(
        self,
        node: Node,
        name: str,
        owner: NodeID,
        acting: dict[int, ActingResponse],
        number: int,
    ) -> None:
        """`acting`: where responses are found when letters for them come, by `number`."""
        self._node = node
        self._name = name
        self._owner = owner
        self._acting = acting
        self._number = number
        self._watching: asyncio.Task[None] | None = None

    async def attach(self, receiver: Response) -> None:
        """As that of a session of this node.

        Raises:
            SessionGoneError
        """
        release = Release(self._name, self._number)
        acting = ActingResponse(receiver, lambda: self._tell(release))
        self._acting[self._number] = acting
        try:
            attached = await self._ask(Attach(self._name, self._number, receiver.limit))
        except BaseException:
            del self._acting[self._number]
            self._tell(Detach(self._name, self._number))  # it may be attached all the same
            raise
        if not attached:
            del self._acting[self._number]
            raise SessionGoneError
        self._watching = asyncio.create_task(self._watch(acting))
        self._node.opened(acting)

    def detach(self, receiver: Receiver, *, interrupted: bool) -> None:
        if self._watching is not None:
            self._watching.cancel()
        acting = self._acting.pop(self._number, None)
        if acting is not None:
            self._node.closed(acting)
            if interrupted or acting.is_interrupted:
                self._tell(Detach(self._name, self._number))

    async def deliver(self, frames: Sequence[bytes]) -> bool:
        """As that of a session of this node.

        Raises:
            EngineUnavailable: nobody knows whether they were taken.
        """
        texts = [frame.decode() for frame in frames]
        asking = asyncio.ensure_future(self._ask(Deliver(self._name, texts), DELIVER_PATIENCE))
        try:
            await asyncio.wait([asking], timeout=ANSWER_PATIENCE)
            if not asking.done():
                await self._ask(Watch(self._name, self._number))  # any answer will do
            return await asking
        except SessionGoneError as error:
            raise EngineUnavailable(f"the owner of a session does not answer: {error}") from error
        finally:
            asking.cancel()

    async def _watch(self, acting: ActingResponse) -> None:
        watch = Watch(self._name, self._number)
        with contextlib.suppress(SessionGoneError):
            await asyncio.sleep(WATCH_INTERVAL)
            while await self._ask(watch):
                await asyncio.sleep(WATCH_INTERVAL)
        acting.interrupted()

    async def _ask(self, letter: relay_messages.Letter, patience: float = ANSWER_PATIENCE) -> bool:
        try:
            answer = await self._node.post.ask(
                self._owner, SUBJECT, relay_messages.encode(letter), patience
            )
        except EngineUnavailable as error:
            raise SessionGoneError(str(error)) from error
        return answer == relay_messages.YES

    def _tell(self, letter: relay_messages.Letter) -> None:
        self._node.spawn(self._send(letter))

    async def _send(self, letter: relay_messages.Letter) -> None:
        # where that fails nobody watches the receiver, which is as good
        with contextlib.suppress(EngineUnavailable):
            await self._node.post.send(self._owner, SUBJECT, relay_messages.encode(letter))
