"""Channel options under their older and their newer names: what they are together.

Older names, such as `publish`, are those of Centrifugo 2; newer names, such as
`allow_publish_for_client`, those of later versions. Every `ChannelOptions` has all of them, with
values that mean the same, so no other code computes one from the other.

- An option that is given under its newer name decides, for clients of both generations.
- `.._for_client` and `.._for_subscriber` are one right: where one of them is given, the other is
  off unless it is given too, and the older names of this right do not count.
- `.._for_anonymous` follows the older names where no newer name of the right is given.

docs/options.md, "Older and newer names".
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

_PUBLISH = ("allow_publish_for_client", "allow_publish_for_subscriber")

REPLACED: Mapping[str, tuple[str, ...]] = {
    "server_side": ("allow_subscribe_for_client",),
    "anonymous": ("allow_subscribe_for_anonymous",),
    "publish": _PUBLISH,
    "subscribe_to_publish": _PUBLISH,
    "presence_disable_for_client": ("allow_presence_for_client", "allow_presence_for_subscriber"),
    "history_disable_for_client": ("allow_history_for_client", "allow_history_for_subscriber"),
    "history_recover": ("force_recovery",),
}
"""Older option → the newer ones of the same right. One of them replaces the older option."""

_FOLLOWERS: Mapping[str, tuple[str, ...]] = {"server_side": ("allow_user_limited_channels",)}
"""Older option → newer ones that follow from it, and may be given beside it."""


class _Right(NamedTuple):
    """Who may do something in a channel."""

    client: bool
    subscriber: bool
    anonymous: bool


def resolve(given: Mapping[str, Any]) -> dict[str, bool]:
    """Return the channel options whose values follow from others.

    Args:
        given: every channel option. A newer name that is not given has the value None.
    """
    publishes, subscribed = given["publish"], given["subscribe_to_publish"]
    publish = _right(
        "publish", given, publishes and not subscribed, publishes and subscribed, publishes
    )
    is_present = given["presence"] and not given["presence_disable_for_client"]
    presence = _right("presence", given, False, is_present, is_present)
    is_kept = given["history_size"] > 0 and given["history_lifetime"] > 0
    is_kept = is_kept and not given["history_disable_for_client"]
    history = _right("history", given, False, is_kept, is_kept)
    subscribe = _or(given["allow_subscribe_for_client"], not given["server_side"])
    anonymous = _or(given["allow_subscribe_for_anonymous"], given["anonymous"])
    recover = _or(given["force_recovery"], given["history_recover"])
    of_right = {
        "subscribe_to_publish": ("publish", publish.subscriber and not publish.client),
        "presence_disable_for_client": ("presence", not (presence.client or presence.subscriber)),
        "history_disable_for_client": ("history", not (history.client or history.subscriber)),
    }
    return {
        "allow_subscribe_for_client": subscribe,
        "allow_subscribe_for_anonymous": anonymous,
        # without them, # would be an ordinary character in a name that any client may use
        "allow_user_limited_channels": _or(given["allow_user_limited_channels"], subscribe),
        **_options("publish", publish),
        **_options("presence", presence),
        **_options("history", history),
        "force_recovery": recover,
        "force_push_join_leave": _or(given["force_push_join_leave"], bool(given["join_leave"])),
        # and back
        "server_side": given["server_side"] and not subscribe,
        "anonymous": anonymous,
        "publish": publish.client or publish.subscriber,
        **{
            older: value if _is_given(right, given) else given[older]
            for older, (right, value) in of_right.items()
        },
        "history_recover": recover,
    }


def outranked(older: str) -> tuple[str, ...]:
    """Return the newer options that do not count where a stronger source gives an older one."""
    return (*REPLACED.get(older, ()), *_FOLLOWERS.get(older, ()))


def replacing(older: str, given: Container[str]) -> str:
    """Return the newer option that counts in place of an older one; "" if none does.

    Args:
        older: the name of the older option.
        given: the names of the options that the same source gives for the same channels.
    """
    return next((newer for newer in REPLACED.get(older, ()) if newer in given), "")


def _right(
    right: str, given: Mapping[str, Any], client: bool, subscriber: bool, anonymous: bool
) -> _Right:
    """Return who has a right, which the older names give to these."""
    others = given[f"allow_{right}_for_anonymous"]
    if not _is_given(right, given):
        return _Right(client, subscriber, _or(others, anonymous))
    return _Right(
        client=bool(given[f"allow_{right}_for_client"]),
        subscriber=bool(given[f"allow_{right}_for_subscriber"]),
        anonymous=bool(others),
    )


def _is_given(right: str, given: Mapping[str, Any]) -> bool:
    names = (f"allow_{right}_for_client", f"allow_{right}_for_subscriber")
    return any(given[name] is not None for name in names)


def _options(right: str, who: _Right) -> dict[str, bool]:
    return {f"allow_{right}_for_{name}": value for name, value in who._asdict().items()}


def _or(given: bool | None, older: bool) -> bool:
    return older if given is None else given
