"""Operations that change the stream of a channel: publish and history_remove."""

from __future__ import annotations

from collections.abc import Sequence

from realtime.channel_rules import check_channel, check_data
from realtime.cluster.member import Member, NewPublication
from realtime.config.options import ChannelOptions, Config
from realtime.errors import BadRequest, EngineUnavailable, Error, NoReply, NotAvailable
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, StreamPosition

Checked = tuple[NewPublication, ChannelOptions]
"""A publication that `check_new` has let through, and the options of its channel."""


async def publish(member: Member, new: NewPublication) -> StreamPosition | None:
    """Publish into a channel.

    Returns:
        The position of the publication; None without history. If its idempotency key was used,
        that of the publication that used it; if its version is not newer, the top position.

    Raises:
        NotAvailable: it has a version, and is not kept.
    """
    return await member.publish_new(new, check_new(new, member.config))


def check_new(new: NewPublication, config: Config) -> ChannelOptions:
    """Return the options of the channel that a publication is for.

    Raises:
        NotAvailable: the publication has a version, and is not kept.
        NotAnObject: `publication_data_format` wants a JSON object.
        BadRequest: the data do not have the type that is declared for the channel.
    """
    options = check_kept(new, config)
    check_data(options, new.data)
    if config.types is not None:
        config.types.check_sent(new.channel, new.data)
    return options


def check_kept(new: NewPublication, config: Config) -> ChannelOptions:
    """Return the options of the channel that a kept publication is for.

    Its data were checked before it was kept. What they must be may have changed since, and it is
    committed.

    Raises:
        NotAvailable: the publication has a version, and is not kept in a history.
    """
    options = check_channel(new.channel, config)
    if new.version is not None and (new.skip_history or not options.keeps_history):
        raise NotAvailable
    return options


async def broadcast(
    member: Member, channels: Sequence[ChannelName], data: Payload
) -> list[StreamPosition | None]:
    """Publish the same data into several channels; see `publish_many`."""
    return await publish_many(member, [NewPublication(channel, data) for channel in channels])


async def publish_many(
    member: Member, publications: Sequence[NewPublication]
) -> list[StreamPosition | None]:
    """Publish into several channels.

    Not atomic: the channels before one that is refused get their publication.

    Returns:
        For each what `publish` returns.

    Raises:
        BadRequest: there are no publications, or a name is not one of a channel.
        EngineUnavailable: none was published.
        NoReply: some may have been published.
    """
    if not publications:
        raise BadRequest
    checked: list[Checked] = []
    refused: Error | None = None
    for new in publications:
        try:
            checked.append((new, check_new(new, member.config)))
        except Error as error:
            refused = error
            break
    positions = await publish_checked(member, checked) if checked else []
    if refused is not None:
        raise refused
    return positions


async def publish_checked(
    member: Member, publications: Sequence[Checked]
) -> list[StreamPosition | None]:
    """Publish into several channels what `check_new` has let through; see `publish_many`."""
    if len(publications) == 1:
        return [await member.publish_new(*publications[0])]
    results = await member.publish_many(publications)
    positions: list[StreamPosition | None] = []
    failures: list[EngineUnavailable] = []
    for result in results:
        if isinstance(result, EngineUnavailable):
            failures.append(result)
        else:
            positions.append(result.position)
    if failures:
        unknown = [failure for failure in failures if isinstance(failure, NoReply)]
        if not unknown and len(failures) < len(results):
            raise NoReply(str(failures[0])) from failures[0]
        raise (unknown or failures)[0]
    return positions


async def history_remove(member: Member, channel: ChannelName) -> None:
    """Remove the history of a channel; offsets continue from where they were.

    Raises:
        NotAvailable: the channel has no history.
    """
    if not check_channel(channel, member.config).keeps_history:
        raise NotAvailable
    await member.broker.remove_history(channel)
