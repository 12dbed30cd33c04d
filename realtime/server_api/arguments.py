"""Arguments of the publishing functions, checked and made into publications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from realtime.channel_rules import name, names
from realtime.cluster.member import NewPublication
from realtime.engine.once import MAX_ONCE_LIFETIME, Once
from realtime.engine.versions import MAX_EPOCH_LENGTH, Version
from realtime.hooks.site_values import to_payload
from realtime.payload import site_text
from realtime.protocol.messages import UINT64_MAX


def whole(what: str, number: object) -> int:
    """Return a number; raise TypeError if it is not a whole one."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be a whole number, not {type(number).__name__}")
    return number


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


def versioned(
    publications: list[NewPublication], number: int | None, epoch: str
) -> list[NewPublication]:
    """Give publications a version, if there is one."""
    if number is None and epoch == "":
        return publications
    epoch = site_text("version_epoch", epoch)
    if number is None:
        if epoch:
            raise ValueError("version_epoch needs a version")
        return publications
    if not 1 <= whole("version", number) <= UINT64_MAX:
        raise ValueError(f"a version is 1 to {UINT64_MAX}, not {number}")
    if len(epoch) > MAX_EPOCH_LENGTH:
        raise ValueError(f"version_epoch has at most {MAX_EPOCH_LENGTH} characters")
    return [replace(new, version=Version(int(number), epoch)) for new in publications]


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


def single(
    channel: str,
    data: object,
    once: str | None,
    once_lifetime: int,
    tags: Mapping[str, str] | None,
    skip_history: bool,
    version: int | None,
    version_epoch: str,
) -> list[NewPublication]:
    """Return one publication; errors as those of the other functions.

    Nearly all have none of what is optional, so nothing is called for it.
    """
    new = NewPublication(
        name(channel),
        to_payload(data),
        None if tags is None else tags_of(tags),
        None if once is None else once_of(once, once_lifetime),
        skip_history,
    )
    if version is None and version_epoch == "":
        return [new]
    return versioned([new], version, version_epoch)


def encoded(
    publications: Iterable[tuple[str, object]],
    once: Once | None,
    tags: Mapping[str, str] | None,
    skip_history: bool,
) -> list[NewPublication]:
    """Return (channel, data) pairs as publications; raise TypeError for data without JSON form."""
    tags = tags_of(tags)
    return [
        NewPublication(name(channel), to_payload(data), tags, once, skip_history)
        for channel, data in publications
    ]


def numbered(publications: list[NewPublication]) -> list[NewPublication]:
    """Give each publication an idempotency key of its own: one channel may get several."""
    return [
        new if new.once is None else replace(new, once=new.once._replace(number=index))
        for index, new in enumerate(publications)
    ]


def to_each(
    channels: Iterable[str],
    data: object,
    once: Once | None,
    tags: Mapping[str, str] | None,
    skip_history: bool,
) -> list[NewPublication]:
    """Return a publication of the same data for each channel; errors as `encoded`."""
    payload, tags = to_payload(data), tags_of(tags)
    return [
        NewPublication(channel, payload, tags, once, skip_history) for channel in names(channels)
    ]
