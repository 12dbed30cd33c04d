"""Publishing as plain functions; what holds for all functions is said in `queries`.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from realtime.cluster.member import NewPublication
from realtime.engine.base import Published
from realtime.server_api import transactions
from realtime.server_api.arguments import (
    AsyncManyOptions,
    AsyncPublishOptions,
    ManyOptions,
    PublishOptions,
    check_names,
    several,
    single,
    to_each,
)
from realtime.server_api.arguments import Position as Position
from realtime.server_api.durable import Delivery, rows_of
from realtime.server_api.transactions import (
    UNKNOWN,
    AfterCommit,
    Forgiving,
    Outcomes,
    Publications,
)
from realtime.serving import refuse_on_loop, serving


def publish(channel: str, data: object, **options: Unpack[PublishOptions]) -> Position | None:
    """Publish JSON-serialisable data into a channel.

    Inside `transaction.atomic()`, of any database, the publication goes out after the commit, and
    not at all when the transaction is rolled back. Channel and data are checked at the call; a
    failure after the commit is logged and undoes nothing.

    Args:
        channel: the name of the channel.
        data: anything that has a JSON form, or that the encoder of `json_encoder` gives one.
        options: `once`, `once_lifetime`, `tags`, `skip_history`, `version`, `version_epoch`,
            `expect`, `on_commit`, `fail_silently`, `durable`, `at` and `using`, which
            `PublishOptions` explains.

    Returns:
        The position of the publication, whose `kept` is True. Where it is False, nothing was
        published: of a repeated key, the position of the first one; otherwise that of the last
        publication in the channel. None without history, before the commit, for a durable
        publication, and for one that was dropped.

    Raises:
        NotAvailable: code 108, a version or `expect` in a channel without history, or with
            `skip_history`; or the channel is a map.
        TypeError: the data have no JSON form, or another argument has the wrong type.
        ValueError: the idempotency key is empty, or its lifetime is less than a second or longer
            than 31 days; or the version is not one; or other arguments contradict each other; or
            `publication_data_format` wants a JSON object, and the data are another value.
        ImproperlyConfigured: a durable publication, and the app is not installed.
    """
    delivery = delivery_of(options, PublishOptions)
    return position_of(send(single(channel, data, options), delivery, "apublish")[0])


async def apublish(
    channel: str, data: object, **options: Unpack[AsyncPublishOptions]
) -> Position | None:
    """Publish JSON-serialisable data into a channel. Async version of `publish`.

    It publishes at once: Django's transactions belong to threads. The row of a durable publication
    is written in the thread of `sync_to_async`, in the transaction that is under way there.
    """
    delivery = delivery_of(options, AsyncPublishOptions)
    return position_of((await asend(single(channel, data, options), delivery))[0])


def publish_many(
    publications: Iterable[tuple[str, object]], **options: Unpack[ManyOptions]
) -> list[Position | None]:
    """Publish several (channel, data) pairs, with as few round trips as possible.

    Publications into one channel go out in their order. If one of them is refused, none is
    published. If the engine fails on the way, some may be published. For transactions see
    `publish`.

    Args:
        publications: channel and data of each.
        options: those of `publish`, but no version and no `expect`, because each publication shows
            something else.

    Returns:
        For each publication what `publish` returns.

    Raises:
        TypeError, ValueError: as `publish`.
    """
    delivery = delivery_of(options, ManyOptions)
    return _positions(send(several(publications, options), delivery, "apublish_many"))


async def apublish_many(
    publications: Iterable[tuple[str, object]], **options: Unpack[AsyncManyOptions]
) -> list[Position | None]:
    """Publish several (channel, data) pairs. Async version of `publish_many`, always at once."""
    delivery = delivery_of(options, AsyncManyOptions)
    return _positions(await asend(several(publications, options), delivery))


def broadcast(
    channels: Iterable[str], data: object, **options: Unpack[PublishOptions]
) -> list[Position | None]:
    """Publish the same data into several channels; see `publish` and `publish_many`.

    Args:
        channels: the names of the channels. One that is named twice gets the data twice, or once
            with an idempotency key.
        data: anything that has a JSON form.
        options: those of `publish`, for each of the channels.

    Returns:
        For each channel what `publish` returns.

    Raises:
        NotAvailable: as `publish`, because of any of the channels.
        TypeError: the data have no JSON form, `channels` is one name and not a list of names, or
            another argument has the wrong type.
        ValueError: as `publish`.
    """
    delivery = delivery_of(options, PublishOptions)
    return _positions(send(to_each(channels, data, options), delivery, "abroadcast"))


async def abroadcast(
    channels: Iterable[str], data: object, **options: Unpack[AsyncPublishOptions]
) -> list[Position | None]:
    """Publish the same data into several channels. Async version of `broadcast`, always at once."""
    delivery = delivery_of(options, AsyncPublishOptions)
    return _positions(await asend(to_each(channels, data, options), delivery))


_PLAIN = Delivery()
_OF_DELIVERY = {"on_commit", "fail_silently", "durable", "at", "using", "expect"}


def delivery_of(options: Mapping[str, Any], known: type) -> Delivery:
    """Return when and how to publish; raise TypeError for an option that is not in `known`."""
    if not options:
        return _PLAIN
    check_names(options, known)
    if _OF_DELIVERY.isdisjoint(options):
        return _PLAIN
    return Delivery(
        options.get("on_commit", True),
        options.get("fail_silently", False),
        options.get("durable"),
        options.get("at"),
        options.get("using"),
        options.get("expect") is not None,
    )


def send(publications: Sequence[NewPublication], delivery: Delivery, async_name: str) -> Outcomes:
    """Publish now, after the commit, or by rows. Return what became of each publication."""
    checked = transactions.check(publications, serving.config())
    refuse_on_loop(async_name)
    if delivery.is_answered and delivery.on_commit and transactions.under_way():
        raise ValueError("expect is answered at once: in a transaction, pass on_commit=False")
    kept, others = _divide(checked, delivery)
    if kept:
        rows_of(serving.row_writer).add(kept, delivery.due(), delivery.using)
        transactions.waits(kept, "row")
    if not others:
        return [UNKNOWN] * len(kept)
    if not delivery.fail_silently:
        publisher = serving.after_commit if delivery.on_commit else serving.publisher
    else:
        publisher = AfterCommit(_forgiving) if delivery.on_commit else _forgiving()
    return _in_order(checked, others, publisher.send(others))


async def asend(publications: Sequence[NewPublication], delivery: Delivery) -> Outcomes:
    """Publish now, or by rows. Async version of `send`."""
    checked = transactions.check(publications, serving.config())
    kept, others = _divide(checked, delivery)
    if kept:
        await rows_of(serving.row_writer).aadd(kept, delivery.due(), delivery.using)
        transactions.waits(kept, "row")
    if not others:
        return [UNKNOWN] * len(kept)
    publisher = _forgiving() if delivery.fail_silently else serving.publisher
    return _in_order(checked, others, await publisher.asend(others))


def _divide(publications: Publications, delivery: Delivery) -> tuple[Publications, Publications]:
    """Return the publications that are kept in rows, and the others."""
    if delivery is _PLAIN and not any(options.durable for _, options in publications):
        return (), publications
    delivery.check()
    kept = [each for each in publications if delivery.chooses_row(each[1])]
    if not kept:
        return kept, publications
    kept_ones = set(map(id, kept))
    return kept, [each for each in publications if id(each) not in kept_ones]


def _in_order(publications: Publications, sent: Publications, outcomes: Outcomes) -> Outcomes:
    """Return what became of each publication; `UNKNOWN` for those that are kept in rows."""
    if sent is publications:
        return outcomes
    found = dict(zip(map(id, sent), outcomes, strict=True))
    return [found.get(id(each), UNKNOWN) for each in publications]


def _forgiving() -> Forgiving:
    return Forgiving(lambda: serving.publisher)


def _positions(outcomes: Outcomes) -> list[Position | None]:
    return [position_of(outcome) for outcome in outcomes]


def position_of(outcome: Published) -> Position | None:
    """Return the position of a publication, as the site gets it."""
    if outcome.position is None:
        return None
    position = Position(outcome.position.offset, outcome.position.epoch)
    if not outcome.kept:
        position.kept = False
    return position
