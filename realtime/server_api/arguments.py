"""Options of the publishing functions: explained here, checked, and made into publications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypedDict

from msgspec.structs import replace

from realtime.channel_rules import name, names
from realtime.cluster.member import NOTHING, NewPublication
from realtime.engine.maps import MAX_TTL, KeyMode, check_key
from realtime.engine.once import MAX_ONCE_LIFETIME, ONCE_LIFETIME, Once
from realtime.engine.versions import MAX_EPOCH_LENGTH, Version
from realtime.hooks.site_values import to_payload
from realtime.payload import Payload, site_text
from realtime.protocol.messages import UINT64_MAX, StreamPosition


class _Place(NamedTuple):
    offset: int
    epoch: str


class Position(_Place):
    """A place in a channel's stream: `offset` counts publications from 1 within `epoch`."""

    kept: bool = True
    """False: `publish` published nothing, because the idempotency key was used, the version is not
    newer, or the channel is not where `expect` says. Equality does not look at it."""


class DeliveryOptions(TypedDict, total=False):
    """Options of all functions that publish."""

    once: str | None
    """An idempotency key. The same key in the same channel publishes once, whichever processes
    ask: a repetition publishes nothing. A call with several publications, repeated with the same
    ones in the same order, publishes only those that the first call did not."""
    once_lifetime: int
    """Whole seconds for which the key is remembered; 300 by default."""
    tags: Mapping[str, str] | None
    """Text by which subscribers can filter."""
    fail_silently: bool
    """Drop what cannot be published because this process reaches no clients, or because the
    engine is away, instead of raising NotServing or EngineUnavailable."""
    durable: bool | None
    """True writes a row into the site's database, in the transaction that is under way; serving
    processes publish it after the commit, whatever dies in between. None: as the channel option
    `durable` says, if `on_commit` is True. Needs the app realtime.pending."""
    at: datetime | timedelta | None
    """When to publish: a datetime with a time zone, or a timedelta from now. Such a publication is
    durable."""
    using: str | None
    """Alias of the database for the row; None: that of the transaction."""


class AsyncManyOptions(DeliveryOptions, total=False):
    """Options of `apublish_many`."""

    skip_history: bool
    """Deliver the publication only; it is not kept and has no position."""


class ManyOptions(AsyncManyOptions, total=False):
    """Options of `publish_many`."""

    on_commit: bool
    """True by default; False publishes at once, also inside a transaction."""


class AsyncPublishOptions(AsyncManyOptions, total=False):
    """Options of `apublish` and `abroadcast`."""

    version: int | None
    """The version of what the data show, from 1 on. In channels with history, a publication whose
    version is not newer than the last one in the channel is not published."""
    version_epoch: str
    """The run in which versions grow. The first version of another run is newer than all before
    it; "" is any run."""
    expect: Position | int | None
    """The position, or the offset in whatever epoch, of the last publication in the channel; 0
    before the first. If it is another one by now, nothing is published. The answer cannot wait: in
    a transaction this needs `on_commit=False`, and such a publication is never durable."""


class PublishOptions(AsyncPublishOptions, ManyOptions, total=False):
    """Options of `publish` and `broadcast`."""


class AsyncRemoveOptions(DeliveryOptions, total=False):
    """Options of `Map.aremove`."""

    expect: Position | int | None
    """The position, or the offset in whatever epoch, of the entry as it was read; 0: there was
    none. If the entry is another one by now, it stays. For transactions see `PublishOptions`."""


class RemoveOptions(AsyncRemoveOptions, total=False):
    """Options of `Map.remove`."""

    on_commit: bool
    """As for `publish`."""


class AsyncPutOptions(AsyncRemoveOptions, total=False):
    """Options of `Map.aput`."""

    if_new: bool
    """Put only if the key has no entry."""
    if_exists: bool
    """Put only if the key has an entry."""
    ttl: int | None
    """Whole seconds for which the entry lives; 0: forever. None: as the options of the channel
    say."""
    version: int | None
    """The version of what the data show, from 1 on. An entry with this version or a newer one
    stays."""
    version_epoch: str
    """The run in which versions grow, as for `publish`."""


class PutOptions(AsyncPutOptions, RemoveOptions, total=False):
    """Options of `Map.put`."""


def check_names(options: Mapping[str, Any], known: Any) -> None:
    """Raise TypeError for an option that a function does not have. `known`: its TypedDict."""
    if not options.keys() <= known.__optional_keys__:
        [option, *_] = options.keys() - known.__optional_keys__
        raise TypeError(f"unexpected keyword argument {option!r}")


def whole(what: str, number: object) -> int:
    """Return a number; raise TypeError if it is not a whole one."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be a whole number, not {type(number).__name__}")
    return number


def distinct(channels: Iterable[str]) -> list[str]:
    """Return the names of channels, each once; raise TypeError if they are not names."""
    return list(dict.fromkeys(names(channels)))


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


def once_of(key: str | None, lifetime: int) -> Once | None:
    """Return an idempotency key; raise TypeError or ValueError if it is not one."""
    if key is None:
        return None
    key = site_text("an idempotency key", key)
    if not isinstance(lifetime, int):
        raise TypeError(f"once_lifetime must be whole seconds, not {type(lifetime).__name__}")
    if not key:
        raise ValueError("an idempotency key must not be empty")
    if not 1 <= lifetime <= MAX_ONCE_LIFETIME:
        raise ValueError(f"once_lifetime must be 1 to {MAX_ONCE_LIFETIME} seconds, not {lifetime}")
    return Once(key, int(lifetime))


def version_of(number: int | None, epoch: str) -> Version | None:
    """Return a version; raise TypeError or ValueError if it is not one."""
    epoch = site_text("version_epoch", epoch)
    if number is None:
        if epoch:
            raise ValueError("version_epoch needs a version")
        return None
    if not 1 <= whole("version", number) <= UINT64_MAX:
        raise ValueError(f"a version is 1 to {UINT64_MAX}, not {number}")
    if len(epoch) > MAX_EPOCH_LENGTH:
        raise ValueError(f"version_epoch has at most {MAX_EPOCH_LENGTH} characters")
    return Version(int(number), epoch)


def ttl_of(ttl: int | None) -> int | None:
    """Return the lifetime of an entry; raise TypeError or ValueError if it is not one."""
    if ttl is not None and not 0 <= whole("ttl", ttl) <= MAX_TTL:
        raise ValueError(f"ttl must be 0 to {MAX_TTL} seconds, not {ttl}")
    return ttl


def tags_of(tags: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return tags as plain strings; raise TypeError if they are not text."""
    if tags is None:
        return None
    if not isinstance(tags, Mapping):
        raise TypeError(f"tags must be a dict of strings, not {type(tags).__name__}")
    return {
        site_text("a text in tags", key): site_text("a text in tags", value)
        for key, value in tags.items()
    }


def _extras(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `NewPublication` that options set."""
    fields: dict[str, Any] = {"skip_history": options.get("skip_history", False)}
    if "tags" in options:
        fields["tags"] = tags_of(options["tags"])
    if "once" in options:
        fields["once"] = once_of(options["once"], options.get("once_lifetime", ONCE_LIFETIME))
    if "version" in options or "version_epoch" in options:
        fields["version"] = version_of(options.get("version"), options.get("version_epoch", ""))
    if "expect" in options:
        fields["expect"] = stream_position(options["expect"])
    return fields


def single(channel: str, data: object, options: AsyncPublishOptions) -> list[NewPublication]:
    """Return one publication. Nearly all have no options, so nothing is called for them.

    Raises:
        TypeError: the data have no JSON form, or an option has the wrong type.
        ValueError: an option has a wrong value.
    """
    if not options:
        return [NewPublication(name(channel), to_payload(data))]
    return [NewPublication(name(channel), to_payload(data), **_extras(options))]


def change(
    channel: str, key: str, data: Payload | None, options: Mapping[str, Any]
) -> list[NewPublication]:
    """Return a change of a map. `data`: None removes the key.

    Raises:
        BadRequest: it is no key.
        TypeError, ValueError: as `single`.
    """
    key = site_text("a key", key)
    check_key(key)
    mode: KeyMode = "if_new" if options.get("if_new") else ""
    if options.get("if_exists"):
        if mode:
            raise ValueError("if_new and if_exists contradict each other")
        mode = "if_exists"
    new = NewPublication(
        name(channel),
        NOTHING if data is None else data,
        key=key,
        removed=data is None,
        key_mode=mode,
        ttl=ttl_of(options.get("ttl")),
        **_extras(options),
    )
    return [new]


def several(
    publications: Iterable[tuple[str, object]], options: AsyncManyOptions
) -> list[NewPublication]:
    """Return (channel, data) pairs as publications; errors as `single`.

    Each has an idempotency key of its own: one channel may get several.
    """
    extras = _extras(options)
    new = [
        NewPublication(name(channel), to_payload(data), **extras) for channel, data in publications
    ]
    once = extras.get("once")
    if once is None:
        return new
    return [replace(each, once=once._replace(number=index)) for index, each in enumerate(new)]


def to_each(
    channels: Iterable[str], data: object, options: AsyncPublishOptions
) -> list[NewPublication]:
    """Return a publication of the same data for each channel; errors as `single`."""
    payload, extras = to_payload(data), _extras(options)
    return [NewPublication(channel, payload, **extras) for channel in names(channels)]
