"""Publishing as plain functions; what holds for all functions is said in `functions`.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from realtime.channel_rules import name, names
from realtime.cluster.member import NewPublication
from realtime.engine.once import MAX_ONCE_LIFETIME, ONCE_LIFETIME, Once
from realtime.engine.versions import MAX_EPOCH_LENGTH, Version
from realtime.hooks.site_values import to_payload
from realtime.payload import site_text
from realtime.protocol.messages import UINT64_MAX, StreamPosition
from realtime.server_api import transactions
from realtime.server_api.transactions import AfterCommit, Forgiving, Publications, Publisher
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


def whole(what: str, number: object) -> int:
    """Return a number; raise TypeError if it is not a whole one."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be a whole number, not {type(number).__name__}")
    return number


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

    Returns:
        The position of the publication; of a repetition, that of the first one; of a version that
        is not newer, that of the last publication. None without history, before the commit, and
        for a publication that was dropped.

    Raises:
        NotAvailable: code 108, a version in a channel without history, or with `skip_history`.
        TypeError: the data have no JSON form, or another argument has the wrong type.
        ValueError: the idempotency key is empty, or its lifetime is less than a second or longer
            than 31 days; or the version is not one.
    """
    new = _encoded([(channel, data)], _once(once, once_lifetime), tags, skip_history)
    new = _versioned(new, version, version_epoch)
    return _send(new, on_commit, fail_silently, "apublish")[0]


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
) -> Position | None:
    """Publish JSON-serialisable data into a channel. Async version of `publish`.

    It publishes at once: Django's transactions belong to threads.
    """
    new = _encoded([(channel, data)], _once(once, once_lifetime), tags, skip_history)
    new = _versioned(new, version, version_epoch)
    return (await _asend(new, fail_silently))[0]


def publish_many(
    publications: Iterable[tuple[str, object]],
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    on_commit: bool = True,
    fail_silently: bool = False,
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

    Returns:
        For each publication what `publish` returns.

    Raises:
        TypeError: some data have no JSON form, or another argument has the wrong type.
        ValueError: as `publish`.
    """
    new = _numbered(_encoded(publications, _once(once, once_lifetime), tags, skip_history))
    return _send(new, on_commit, fail_silently, "apublish_many")


async def apublish_many(
    publications: Iterable[tuple[str, object]],
    *,
    once: str | None = None,
    once_lifetime: int = ONCE_LIFETIME,
    tags: Mapping[str, str] | None = None,
    skip_history: bool = False,
    fail_silently: bool = False,
) -> list[Position | None]:
    """Publish several (channel, data) pairs. Async version of `publish_many`, always at once."""
    new = _numbered(_encoded(publications, _once(once, once_lifetime), tags, skip_history))
    return await _asend(new, fail_silently)


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

    Returns:
        For each channel what `publish` returns.

    Raises:
        NotAvailable: as `publish`, because of any of the channels.
        TypeError: the data have no JSON form, `channels` is one name and not a list of names, or
            another argument has the wrong type.
        ValueError: as `publish`.
    """
    new = _to_each(channels, data, _once(once, once_lifetime), tags, skip_history)
    new = _versioned(new, version, version_epoch)
    return _send(new, on_commit, fail_silently, "abroadcast")


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
) -> list[Position | None]:
    """Publish the same data into several channels. Async version of `broadcast`, always at once."""
    new = _to_each(channels, data, _once(once, once_lifetime), tags, skip_history)
    new = _versioned(new, version, version_epoch)
    return await _asend(new, fail_silently)


def _once(key: str | None, lifetime: int) -> Once | None:
    if key is None:
        return None
    if not isinstance(key, str):
        raise TypeError(f"an idempotency key must be a string, not {type(key).__name__}")
    if not isinstance(lifetime, int):
        raise TypeError(f"once_lifetime must be whole seconds, not {type(lifetime).__name__}")
    if not key:
        raise ValueError("an idempotency key must not be empty")
    if not 1 <= lifetime <= MAX_ONCE_LIFETIME:
        raise ValueError(f"once_lifetime must be 1 to {MAX_ONCE_LIFETIME} seconds, not {lifetime}")
    return Once(key, int(lifetime))


def _versioned(
    publications: list[NewPublication], number: int | None, epoch: str
) -> list[NewPublication]:
    """Give publications a version, if there is one."""
    epoch = site_text("version_epoch", epoch)
    if number is None:
        if epoch:
            raise ValueError("version_epoch needs a version")
        return publications
    if not 1 <= whole("version", number) <= UINT64_MAX:
        raise ValueError(f"a version is 1 to {UINT64_MAX}, not {number}")
    if len(epoch) > MAX_EPOCH_LENGTH:
        raise ValueError(f"version_epoch has at most {MAX_EPOCH_LENGTH} characters")
    return [new._replace(version=Version(int(number), epoch)) for new in publications]


def _tags(tags: Mapping[str, str] | None) -> dict[str, str] | None:
    if tags is None:
        return None
    if not isinstance(tags, Mapping):
        raise TypeError(f"tags must be a dict of strings, not {type(tags).__name__}")
    return {
        site_text("a text in tags", key): site_text("a text in tags", value)
        for key, value in tags.items()
    }


def _encoded(
    publications: Iterable[tuple[str, object]],
    once: Once | None,
    tags: Mapping[str, str] | None,
    skip_history: bool,
) -> list[NewPublication]:
    tags = _tags(tags)
    return [
        NewPublication(name(channel), to_payload(data), tags, once, skip_history)
        for channel, data in publications
    ]


def _numbered(publications: list[NewPublication]) -> list[NewPublication]:
    """Give each publication an idempotency key of its own: one channel may get several."""
    return [
        new if new.once is None else new._replace(once=new.once._replace(number=index))
        for index, new in enumerate(publications)
    ]


def _to_each(
    channels: Iterable[str],
    data: object,
    once: Once | None,
    tags: Mapping[str, str] | None,
    skip_history: bool,
) -> list[NewPublication]:
    encoded, tags = to_payload(data), _tags(tags)
    return [
        NewPublication(channel, encoded, tags, once, skip_history) for channel in names(channels)
    ]


def _send(
    publications: Publications, on_commit: bool, fail_silently: bool, async_name: str
) -> list[Position | None]:
    transactions.check(publications, serving.config())
    refuse_on_loop(async_name)
    if not fail_silently:
        publisher = serving.after_commit if on_commit else serving.publisher
    else:
        publisher = AfterCommit(_forgiving) if on_commit else _forgiving()
    return [to_position(position) for position in publisher.send(publications)]


async def _asend(publications: Publications, fail_silently: bool) -> list[Position | None]:
    transactions.check(publications, serving.config())
    publisher = _forgiving() if fail_silently else serving.publisher
    return [to_position(position) for position in await publisher.asend(publications)]


def _forgiving() -> Publisher:
    return Forgiving(lambda: serving.publisher)


def to_position(position: StreamPosition | None) -> Position | None:
    """Return a position as the functions give it."""
    return None if position is None else Position(position.offset, position.epoch)
