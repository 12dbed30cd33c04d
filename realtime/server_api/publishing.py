"""Publishing as plain functions; what holds for all functions is said in `functions`.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from realtime.cluster.member import NewPublication
from realtime.engine.once import ONCE_LIFETIME
from realtime.payload import site_text
from realtime.protocol.messages import StreamPosition
from realtime.server_api import transactions
from realtime.server_api.arguments import (
    encoded,
    numbered,
    once_of,
    single,
    to_each,
    versioned,
    whole,
)
from realtime.server_api.durable import Wish, rows_of
from realtime.server_api.transactions import (
    AfterCommit,
    Forgiving,
    Positions,
    Publications,
    Publisher,
)
from realtime.serving import refuse_on_loop, serving


class Position(NamedTuple):
    """A place in a channel's stream: `offset` counts publications from 1 within `epoch`."""

    offset: int
    epoch: str


def stream_position(position: Position | int | None) -> StreamPosition | None:
    """Return the position that a site gives; a number is an offset in whatever epoch.

    Raises:
        TypeError: it is not one.
        ValueError: the offset is less than 0.
    """
    if position is None:
        return None
    offset, epoch = position if isinstance(position, tuple) else (position, "")
    if whole("an offset", offset) < 0:
        raise ValueError(f"an offset is 0 or more, not {offset}")
    return StreamPosition(offset, site_text("an epoch", epoch))


def publish(
    channel: str,
    data: object,
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    version: int | None = None,
    version_epoch: str = "",
    on_commit: bool = True,
    fail_silently: bool = False,
    durable: bool | None = None,
    at: datetime | timedelta | None = None,
    using: str | None = None,
) -> Position | None:
    """Publish JSON-serialisable data into a channel.

    Inside `transaction.atomic()`, of any database, the publication goes out after the commit, and
    not at all when the transaction is rolled back. Channel and data are checked at the call; a
    failure after the commit is logged and undoes nothing.

    Args:
        channel: the name of the channel.
        data: anything that has a JSON form, or that the encoder of `json_encoder` gives one.
        once: an idempotency key. The same key in the same channel publishes once, whichever
            processes ask: a repetition publishes nothing.
        once_lifetime: whole seconds for which the key is remembered.
        tags: text by which subscribers can filter.
        skip_history: deliver the publication only; it is not kept and has no position.
        version: of what the data show, from 1 on. In channels with history, a publication whose
            version is not newer than the last one in the channel is not published.
        version_epoch: the run in which versions grow. The first version of another run is newer
            than all before it; "" is any run.
        on_commit: False publishes at once, also inside a transaction.
        fail_silently: drop what cannot be published because this process reaches no clients, or
            because Redis is away, instead of raising NotServing or EngineUnavailable.
        durable: True writes a row into the site's database, in the transaction that is under way;
            serving processes publish it after the commit, whatever dies in between. None: as the
            channel option `durable` says, if `on_commit` is True. Needs the app realtime.pending.
        at: when to publish: a datetime with a time zone, or a timedelta from now. Such a
            publication is durable.
        using: alias of the database for the row; None: that of the transaction.

    Returns:
        The position of the publication; of a repetition, that of the first one; of a version that
        is not newer, that of the last publication. None without history, before the commit, for a
        durable publication, and for one that was dropped.

    Raises:
        NotAvailable: code 108, a version in a channel without history, or with `skip_history`.
        TypeError: the data have no JSON form, or another argument has the wrong type.
        ValueError: the idempotency key is empty, or its lifetime is less than a second or longer
            than 31 days; or the version is not one; or other arguments contradict each other; or
            `publication_data_format` wants a JSON object, and the data are another value.
        ImproperlyConfigured: a durable publication, and the app is not installed.
    """
    new = single(channel, data, once, once_lifetime, tags, skip_history, version, version_epoch)
    return _send(new, on_commit, fail_silently, "apublish", Wish(durable, at, using))[0]


async def apublish(
    channel: str,
    data: object,
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    version: int | None = None,
    version_epoch: str = "",
    fail_silently: bool = False,
    durable: bool | None = None,
    at: datetime | timedelta | None = None,
    using: str | None = None,
) -> Position | None:
    """Publish JSON-serialisable data into a channel. Async version of `publish`.

    It publishes at once: Django's transactions belong to threads. The row of a durable publication
    is written in the thread of `sync_to_async`, in the transaction that is under way there.
    """
    new = single(channel, data, once, once_lifetime, tags, skip_history, version, version_epoch)
    return (await _asend(new, fail_silently, Wish(durable, at, using)))[0]


def publish_many(
    publications: Iterable[tuple[str, object]],
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    on_commit: bool = True,
    fail_silently: bool = False,
    durable: bool | None = None,
    at: datetime | timedelta | None = None,
    using: str | None = None,
) -> list[Position | None]:
    """Publish several (channel, data) pairs, with as few round trips as possible.

    Publications into one channel go out in their order. If one of them is refused, none is
    published. If Redis fails on the way, some may be published. For transactions see `publish`.
    There is no version, because each publication shows something else.

    Args:
        publications: channel and data of each.
        once: an idempotency key of the call: repeated with the same publications in the same
            order, it publishes only those that the first call did not.
        once_lifetime: whole seconds for which the key is remembered.
        tags: of each publication, as in `publish`.
        skip_history: as in `publish`.
        on_commit: False publishes at once, also inside a transaction.
        fail_silently: drop what cannot be published because this process reaches no clients, or
            because Redis is away, instead of raising NotServing or EngineUnavailable.
        durable, at, using: as in `publish`.

    Returns:
        For each publication what `publish` returns.

    Raises:
        TypeError: some data have no JSON form, or another argument has the wrong type.
        ValueError: as `publish`.
    """
    new = numbered(encoded(publications, once_of(once, once_lifetime), tags, skip_history))
    return _send(new, on_commit, fail_silently, "apublish_many", Wish(durable, at, using))


async def apublish_many(
    publications: Iterable[tuple[str, object]],
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    fail_silently: bool = False,
    durable: bool | None = None,
    at: datetime | timedelta | None = None,
    using: str | None = None,
) -> list[Position | None]:
    """Publish several (channel, data) pairs. Async version of `publish_many`, always at once."""
    new = numbered(encoded(publications, once_of(once, once_lifetime), tags, skip_history))
    return await _asend(new, fail_silently, Wish(durable, at, using))


def broadcast(
    channels: Iterable[str],
    data: object,
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    version: int | None = None,
    version_epoch: str = "",
    on_commit: bool = True,
    fail_silently: bool = False,
    durable: bool | None = None,
    at: datetime | timedelta | None = None,
    using: str | None = None,
) -> list[Position | None]:
    """Publish the same data into several channels; see `publish` and `publish_many`.

    Args:
        channels: the names of the channels. One that is named twice gets the data twice, or once
            with an idempotency key.
        data: anything that has a JSON form.
        once: an idempotency key, in each of the channels.
        once_lifetime: whole seconds for which the key is remembered.
        tags: as in `publish`.
        skip_history: as in `publish`.
        version, version_epoch: as in `publish`, for each of the channels.
        on_commit: False publishes at once, also inside a transaction.
        fail_silently: drop what cannot be published because this process reaches no clients, or
            because Redis is away, instead of raising NotServing or EngineUnavailable.
        durable, at, using: as in `publish`.

    Returns:
        For each channel what `publish` returns.

    Raises:
        NotAvailable: as `publish`, because of any of the channels.
        TypeError: the data have no JSON form, `channels` is one name and not a list of names, or
            another argument has the wrong type.
        ValueError: as `publish`.
    """
    new = to_each(channels, data, once_of(once, once_lifetime), tags, skip_history)
    new = versioned(new, version, version_epoch)
    return _send(new, on_commit, fail_silently, "abroadcast", Wish(durable, at, using))


async def abroadcast(
    channels: Iterable[str],
    data: object,
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    version: int | None = None,
    version_epoch: str = "",
    fail_silently: bool = False,
    durable: bool | None = None,
    at: datetime | timedelta | None = None,
    using: str | None = None,
) -> list[Position | None]:
    """Publish the same data into several channels. Async version of `broadcast`, always at once."""
    new = to_each(channels, data, once_of(once, once_lifetime), tags, skip_history)
    new = versioned(new, version, version_epoch)
    return await _asend(new, fail_silently, Wish(durable, at, using))


def _send(
    publications: Sequence[NewPublication],
    on_commit: bool,
    fail_silently: bool,
    async_name: str,
    wish: Wish,
) -> list[Position | None]:
    checked = transactions.check(publications, serving.config())
    refuse_on_loop(async_name)
    kept, others = _divide(checked, wish, on_commit)
    if kept:
        rows_of(serving.row_writer).add(kept, wish.due(), wish.using)
        transactions.waits(kept, "row")
    if not others:
        return [None] * len(kept)
    if not fail_silently:
        publisher = serving.after_commit if on_commit else serving.publisher
    else:
        publisher = AfterCommit(_forgiving) if on_commit else _forgiving()
    return _in_order(checked, others, publisher.send(others))


async def _asend(
    publications: Sequence[NewPublication], fail_silently: bool, wish: Wish
) -> list[Position | None]:
    checked = transactions.check(publications, serving.config())
    kept, others = _divide(checked, wish, True)
    if kept:
        await rows_of(serving.row_writer).aadd(kept, wish.due(), wish.using)
        transactions.waits(kept, "row")
    if not others:
        return [None] * len(kept)
    publisher = _forgiving() if fail_silently else serving.publisher
    return _in_order(checked, others, await publisher.asend(others))


def _divide(
    publications: Publications, wish: Wish, on_commit: bool
) -> tuple[Publications, Publications]:
    """Return the publications that are kept in rows, and the others."""
    if wish.durable is None and wish.at is None:
        for _, options in publications if on_commit else ():
            if options.durable:
                break
        else:
            return (), publications
    wish.check(on_commit)
    kept = [each for each in publications if wish.chooses(each[1], on_commit)]
    if not kept:
        return kept, publications
    kept_ones = set(map(id, kept))
    return kept, [each for each in publications if id(each) not in kept_ones]


def _in_order(
    publications: Publications, sent: Publications, positions: Positions
) -> list[Position | None]:
    """Return the position of each publication; None for those that are kept in rows."""
    if sent is publications:
        return [to_position(position) for position in positions]
    found = dict(zip(map(id, sent), positions, strict=True))
    return [to_position(found.get(id(each))) for each in publications]


def _forgiving() -> Publisher:
    return Forgiving(lambda: serving.publisher)


def to_position(position: StreamPosition | None) -> Position | None:
    """Return a position as the functions give it."""
    return None if position is None else Position(position.offset, position.epoch)
