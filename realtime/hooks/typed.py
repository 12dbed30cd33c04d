"""Publications of clients into channels with declared types: checked before any hook is asked."""

from __future__ import annotations

import logging

from realtime.config.channel_types import ChannelTypes
from realtime.config.options import ChannelOptions, Config
from realtime.errors import Error, InternalError
from realtime.hooks.runner import Connections, Runner, own_connections
from realtime.node.hooks import Caller, Hooks
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName

logger = logging.getLogger("realtime.hooks")


async def check(
    types: ChannelTypes, runner: Runner, caller: Caller, channel: ChannelName, data: Payload
) -> None:
    """Check what a client publishes, if a type is declared for the channel.

    Args:
        types: the declared types.
        runner: its threads run checks that may query the database.
        caller: the client.
        channel: the channel.
        data: what it publishes.

    Raises:
        BadRequest: the data do not have the declared type.
        LimitExceeded: too many checks of this client or user take too long.
        InternalError: the check failed; the log has the reason.
    """
    found = types.of_clients(channel)
    if found is None:
        return
    if found.may_query:
        await runner.run(found.accept, data, caller=caller)
    else:
        found.accept(data)


def check_answer(types: ChannelTypes, channel: ChannelName, data: Payload) -> None:
    """Check what a hook answered with, in place of what the client sent.

    Raises:
        InternalError: it does not have the declared type, and the option says "raise".
    """
    try:
        types.check_sent(channel, data)
    except Error as error:
        logger.error("The hook for %r gave an answer of another type: %s", channel, error.message)
        raise InternalError from None


class TypedHooks(Hooks):
    """The hooks of a site that has declared types, and no hooks. Belongs to one event loop."""

    def __init__(
        self, config: Config, types: ChannelTypes, connections: Connections = own_connections
    ) -> None:
        """
        Args:
            config: the options in force.
            types: the declared types.
            connections: surrounds checks in threads, for their database connections.
        """
        self._types = types
        self._runner = Runner(config.hook_workers, config.hook_timeout, connections)

    async def publish(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, data: Payload
    ) -> Payload:
        await check(self._types, self._runner, caller, channel, data)
        return await super().publish(caller, channel, options, data)

    async def close(self) -> None:
        await self._runner.close()
