"""Dispatch: the commands of one client, one after another, each by its handler in one table.

    transport ─frame─► receive ─► codec ─► session.check ─► handler ─► client.reply

The first frame tells which generation the client speaks. From then on it has one codec and one set
of rules.

Commands of a client run in order, in the receive loop of its transport. The exception is
publishing where the engine takes several publications at a time: the handler of `publish` checks
the command and returns a continuation, which the dispatcher starts before the next command. Any
other command waits until all of these are done.

A handler decodes the params, checks the rules in the order of the protocol, does the work and
replies. It raises `Error` for an error reply and `Disconnect` to close the connection. Any other
exception is a failure of the service; the row of the method says what the client gets then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from realtime import logs
from realtime.clients.client import Client
from realtime.clients.commands import connection, publishing, queries, subscription
from realtime.errors import (
    Disconnect,
    DisconnectServerError,
    Error,
    InternalError,
    MethodNotFound,
    PermissionDenied,
    TooManyRequests,
)
from realtime.node.limits.command_rates import Spent
from realtime.node.limits.user_rates import UserDebts
from realtime.protocol.messages import Command, Method

logger = logging.getLogger("realtime.client")

MAX_PUBLISHING = 64
"""Publications of one client that may be under way."""

COMMANDS_PER_TURN = 64
"""Commands of one client that run before others get a turn, in however many frames they came."""

BYTES_PER_COMMAND = 1024
"""Each 1024 bytes of a frame count as one more command, because reading them takes time."""


Continuation: TypeAlias = Callable[[], Awaitable[None]]
"""The rest of a handler's work. It may run while the next command of the same method does."""


class Handler(NamedTuple):
    """The handler of one method."""

    run: Callable[[Client, Command], Awaitable[Continuation | None]]
    failure: type[Error] | type[Disconnect] = InternalError
    """What the client gets when the engine, a hook or the handler itself fails."""
    for_observers: bool = False
    """Whether observers may use the method."""


HANDLERS: Mapping[Method, Handler] = {
    Method.CONNECT: Handler(connection.connect, DisconnectServerError),
    Method.SUBSCRIBE: Handler(subscription.subscribe, DisconnectServerError),
    Method.UNSUBSCRIBE: Handler(subscription.unsubscribe),
    Method.PUBLISH: Handler(publishing.publish),
    Method.PRESENCE: Handler(queries.presence),
    Method.PRESENCE_STATS: Handler(queries.presence_stats),
    Method.HISTORY: Handler(queries.history),
    Method.PING: Handler(connection.ping, for_observers=True),
    Method.SEND: Handler(publishing.send),
    Method.RPC: Handler(publishing.rpc),
    Method.PONG: Handler(connection.pong, for_observers=True),
    Method.REFRESH: Handler(connection.refresh, for_observers=True),
    Method.SUB_REFRESH: Handler(subscription.sub_refresh),
}

_PACED = frozenset((Method.CONNECT, Method.SUBSCRIBE))
"""What clients send all at once when they come back together."""


class Input(Enum):
    """What becomes of the next frame, where it is not simply handled."""

    FIRST = auto()
    """It tells the generation of the client."""
    OVER = auto()
    """It is dropped: connect failed, and may not be repeated."""


class InputOver(Exception):
    """The rest of a frame is dropped."""


class Dispatcher:
    """Runs the commands of one client. Belongs to the receive loop of its transport."""

    __slots__ = ("_debts", "_in_turn", "_input", "_publishing", "client")

    def __init__(self, client: Client, *, recognises: bool = True) -> None:
        """
        Args:
            recognises: whether the first frame tells the generation; it is known otherwise.
        """
        self.client = client
        self._input: Input | None = Input.FIRST if recognises else None
        self._in_turn = 0
        """Commands since the last turn of others, and what counts as commands."""
        self._publishing: set[asyncio.Task[None]] | None = None
        """Publications under way; None until the first one."""
        self._debts: UserDebts | None = None
        """What its user took; None until the first command after connect."""

    async def receive(self, frame: bytes) -> None:
        """Handle the commands of one frame, in order.

        Never raises. After a defect of the service the client is closed: it comes back and
        recovers, which it would not do if the rest of its frames were dropped in silence.
        """
        client = self.client
        if client.tap is not None:
            client.tap.received(frame)
        self._in_turn += len(frame) // BYTES_PER_COMMAND
        if self._input is not None:
            if self._input is Input.OVER:
                return
            self._input = None
            codec = client.node.codecs.recognise(client.codec, frame)
            if codec is not client.codec:
                client.speak(codec)
        command = None
        client.session.handling = True
        try:
            for command in client.codec.decode(frame):
                if client.is_closing():
                    return
                await self._handle(command)
                self._in_turn += 1
                if self._in_turn >= COMMANDS_PER_TURN or client.has_large_reply:
                    await self._give_turn()
            if command is None:  # white space is work, too
                await self._skip()
        except InputOver:
            self._input = Input.OVER
        except Disconnect as disconnect:
            # its traceback holds this frame, which holds the client
            client.close(disconnect.with_traceback(None))
        except Exception:
            logger.exception(
                "Could not handle a frame of client %s", client.id, extra=logs.of(client)
            )
            client.close(DisconnectServerError())
        finally:
            client.session.handling = False

    async def receive_nothing(self) -> None:
        """Count a message of the client that holds no frame, or that is dropped: it is work, too.

        Never raises.
        """
        try:
            await self._skip()
        except Disconnect as disconnect:
            self.client.close(disconnect.with_traceback(None))

    async def _skip(self) -> None:
        """Count what needs no answer as a command; raises Disconnect."""
        if self.client.node.has_rates:
            self._is_within(None)
        self._in_turn += 1
        if self._in_turn >= COMMANDS_PER_TURN:
            await self._give_turn()

    async def _give_turn(self) -> None:
        self._in_turn = 0
        self.client.has_large_reply = False
        await asyncio.sleep(0)

    async def _handle(self, command: Command) -> None:
        client = self.client
        client.session.check(command)
        node = client.node
        node.counters.commands += 1
        if node.has_rates and not self._is_within(command.method):
            client.reply_error(command, TooManyRequests())
            return
        if command.method in _PACED:
            await node.admission.queue.turn()
            if client.is_closing():
                return
        if command.method is None:
            client.reply_error(command, MethodNotFound())
            return
        handler = HANDLERS[command.method]
        if not (client.session.visible or handler.for_observers):
            client.reply_error(command, PermissionDenied())
            return
        if self._publishing and command.method is not Method.PUBLISH:
            await asyncio.wait(self._publishing)
            if client.is_closing():
                return
        rest = await self._run(command, handler.run(client, command), handler.failure)
        if rest is not None:
            await self._pipeline(command, rest)

    def _is_within(self, method: Method | None) -> bool:
        """Count a command by the rates of the client, and by those of its user if it has one.

        Returns:
            Whether the client may send it now.

        Raises:
            DisconnectTooManyRequests: it goes on although its commands are refused.
        """
        client = self.client
        node = client.node
        of_client, of_user = node.command_rates, node.user_limits.rates
        spent = client.spent
        if spent is None:
            spent = client.spent = Spent()
        spent.heard_at = now = node.loop.time()
        if of_client is not None and not of_client.allows(spent, method, now):
            return False
        if of_user is None:
            return True
        debts = self._debts
        if debts is None:
            if not (user := client.session.user):
                return True
            debts = self._debts = of_user.of(user)
        return of_user.allows(debts, spent, method, now)

    async def _run(
        self,
        command: Command,
        work: Awaitable[Continuation | None],
        failure: type[Error] | type[Disconnect],
    ) -> Continuation | None:
        """Await a handler and turn what it raises into an error reply.

        Returns:
            The rest of its work, where the node pipelines publications; None if all is done.

        Raises:
            Disconnect: the handler raised it, or failed and `failure` is a disconnect.
            InputOver: connect failed, and the client may not try again.
        """
        try:
            rest = await work
            if rest is None or self.client.node.pipelines_publishes:
                return rest
            await rest()
        except Error as error:
            self.client.reply_error(command, error)
            rules = self.client.session.rules
            if command.method is Method.CONNECT and not rules.may_connect_again:
                raise InputOver from None
        except Disconnect:
            raise
        except Exception as error:  # raised by the engine, a hook, or a defect of this service
            self.client.log_failed(f"command {command.method}", error)
            # no variable holds what is raised: its traceback would hold this frame
            if issubclass(failure, Disconnect):
                raise failure from None
            self.client.reply_error(command, failure())
        return None

    async def _pipeline(self, command: Command, publish: Continuation) -> None:
        """Start to publish, and return as soon as the next publication may start.

        The engine gets the publications in the order of these calls.
        """
        if self._publishing is None:
            self._publishing = set()
        elif len(self._publishing) >= MAX_PUBLISHING:
            await asyncio.wait(self._publishing, return_when=asyncio.FIRST_COMPLETED)
        task = self.client.node.spawn(self._publish(command, publish))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish(self, command: Command, publish: Continuation) -> None:
        try:
            await self._run(command, publish(), InternalError)
        except Disconnect as disconnect:
            self.client.close(disconnect.with_traceback(None))
