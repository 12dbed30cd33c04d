"""Rules of channels: which names are valid, which options they have, who may do what.

Names are never changed: no trimming, no case folding. The markers (private prefix, namespace
boundary, user boundary, user separator) are options; an empty marker turns its feature off.

Clients of both generations have the same rights: those of the newer names of the options, which the
older names stand for (`realtime.config.channel_rights`). What differs is the order of the checks,
which is that of their handlers, and the error for what clients may never do.

docs/protocol.md, 1.
"""

from __future__ import annotations

from collections.abc import Iterable

from realtime.config import name_patterns
from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    BadRequest,
    LimitExceeded,
    NamespaceNotFound,
    NotAnObject,
    PermissionDenied,
)
from realtime.payload import Payload, site_text
from realtime.protocol.messages import ChannelName

INTERNAL = "§"
"""First character of the service's own channels. Channels of clients are ASCII."""

CONTROL: ChannelName = f"{INTERNAL}control"
"""The stream of control messages."""

QUESTIONS: ChannelName = f"{INTERNAL}questions"
"""The channel of surveys: questions to all nodes."""

PENDING: ChannelName = f"{INTERNAL}pending"
"""The channel that wakes relays of pending publications."""

INTERNAL_OPTIONS = ChannelOptions()
"""The options of internal channels that keep nothing: of questions, inboxes and wake-ups."""


def inbox(node: str) -> ChannelName:
    """Return the channel of direct messages to one node, by its UID."""
    return f"{INTERNAL}node:{node}"


# names


def check_characters(channel: str) -> None:
    """Refuse a name that is not ASCII.

    Raises:
        BadRequest: it is not.
    """
    if not channel.isascii():
        raise BadRequest


def check_length(
    channel: str, config: Config, too_long: type[LimitExceeded | BadRequest] = LimitExceeded
) -> None:
    """Refuse a name longer than `channel_max_length` bytes.

    Args:
        channel: the name.
        config: the options.
        too_long: the error; for the second generation `BadRequest`.

    Raises:
        too_long: it is longer.
    """
    longest = config.channel_max_length
    if longest > 0 and (
        len(channel) > longest
        or (not channel.isascii() and len(channel.encode("utf-8", "surrogatepass")) > longest)
    ):
        raise too_long


def check_pattern(channel: str, options: ChannelOptions, config: Config) -> None:
    """Refuse a name that `channel_regex` does not match, or without one a name that is not ASCII.

    The expression is for what follows the namespace; in a channel of the top level, for all of the
    name. It is not tried on names that are too long, where no client can be subscribed.

    Raises:
        BadRequest: the name does not match, or is not ASCII, or is too long for an expression.
    """
    if not options.channel_regex:
        check_characters(channel)
        return
    check_length(channel, config, BadRequest)
    if not name_patterns.matches(options.channel_regex, _split(channel, config)[1]):
        raise BadRequest


def namespace_of(channel: str, config: Config) -> str:
    """Return the namespace a channel names, known or not; "" for a channel of the top level.

    ":a" names the empty namespace, so it belongs to the top level too.
    """
    return _split(channel, config)[0]


def _split(channel: str, config: Config) -> tuple[str, str]:
    """Return the namespace a channel names, and what follows it."""
    boundary = config.channel_namespace_boundary
    if not boundary:
        return "", channel
    # the prefix may contain the boundary: with the prefix "p:", "p:chat" is of the top level
    without_prefix = channel.removeprefix(config.channel_private_prefix)
    namespace, found, rest = without_prefix.partition(boundary)
    return (namespace, rest) if namespace and found else ("", channel)


def options_of(channel: str, config: Config) -> ChannelOptions:
    """Return the options of a channel.

    Raises:
        NamespaceNotFound: the channel names a namespace that is not configured.
    """
    namespace = _split(channel, config)[0]
    # as `Config.options_of_namespace`, without a call: each publication comes through here
    options = config.namespaces.get(namespace) if namespace else config.channel
    if options is None:
        raise NamespaceNotFound
    return options


def meta_ttl(config: Config, channel: ChannelName) -> int:
    """Return the seconds for which the position of an unused channel is kept.

    0: as the option of the engine says.
    """
    if channel.startswith(INTERNAL):
        return 0
    try:
        return options_of(channel, config).meta_ttl
    except NamespaceNotFound:
        return 0


def presence_maps(channel: ChannelName, config: Config) -> list[tuple[ChannelName, ChannelOptions]]:
    """Return the maps that show who is in a channel, with their options."""
    boundary = config.channel_namespace_boundary
    return [
        (f"{namespace}{boundary}{channel}", config.namespaces[namespace])
        for namespace in options_of(channel, config).presence_maps
    ]


def map_type(channel: ChannelName, options: ChannelOptions, config: Config) -> int:
    """Return the type of subscriptions that get the entries of a channel, 0 if it is no map.

    1: a map, 2: a presence map of clients, 3: of users.
    """
    if not options.map:
        return 0
    if mapped_channel(channel, config) is None:
        return 1
    return 2 if options.map_key == "client" else 3


def mapped_channel(channel: ChannelName, config: Config) -> ChannelName | None:
    """Return the channel whose clients a presence map shows; None for any other channel."""
    shown = _split(channel, config)[1]
    try:
        is_map = any(name == channel for name, _ in presence_maps(shown, config))
    except NamespaceNotFound:
        return None
    return shown if is_map else None


def is_private(channel: str, config: Config) -> bool:
    """Return whether a subscription needs a subscription token."""
    prefix = config.channel_private_prefix
    return bool(prefix) and channel.startswith(prefix)


def is_user_limited(channel: str, options: ChannelOptions, config: Config) -> bool:
    """Return whether only the users that the name lists may subscribe."""
    boundary = config.channel_user_boundary
    return bool(boundary) and boundary in channel and options.allow_user_limited_channels


def listed_users(channel: str, config: Config) -> list[str]:
    """Return the user IDs in the name of a user-limited channel: what follows the user boundary.

    Returns:
        Never "": anonymous clients have no ID that a name could list. An empty list if the name
        has several boundaries: it may be that of user "a#b", or of user "b", and no user may read
        what is meant for another.
    """
    boundary, separator = config.channel_user_boundary, config.channel_user_separator
    at = channel.find(boundary)
    if at != channel.rfind(boundary):
        return []
    users = channel[at + len(boundary) :]
    return [user for user in (users.split(separator) if separator else [users]) if user]


def can_be_listed(user: str, config: Config) -> bool:
    """Return whether the name of a channel can list this user.

    No name can list an ID that contains the user boundary or the user separator.
    """
    boundary, separator = config.channel_user_boundary, config.channel_user_separator
    if not boundary:
        return False
    names = [user, user] if separator else [user]
    return listed_users(boundary + separator.join(names), config) == names


def allows_user(channel: str, options: ChannelOptions, user: str, config: Config) -> bool:
    """Return whether the name of a channel lets this user in."""
    return not is_user_limited(channel, options, config) or user in listed_users(channel, config)


def check_personal(user: str, config: Config) -> None:
    """Check that a user can have a personal channel, where every user has one.

    Raises:
        BadRequest: no name can list the user; the channel would be open to another one.
    """
    if config.user_subscribe_to_personal and user and not can_be_listed(user, config):
        raise BadRequest


def personal_channel(user: str, config: Config) -> str:
    """Return the name of a user's personal channel, for example "pp:#17" or "#17"."""
    namespace = config.user_personal_channel_namespace
    prefix = f"{namespace}{config.channel_namespace_boundary}" if namespace else ""
    return f"{prefix}{config.channel_user_boundary}{user}"


def name(channel: object) -> ChannelName:
    """Check the name of a channel that the site's code passes, and return it as a plain string.

    Raises:
        TypeError: it is not a string, or has a lone surrogate.
    """
    return site_text("a channel name", channel)


def names(channels: Iterable[str]) -> list[ChannelName]:
    """Check a list of channel names that the site's code passes.

    Raises:
        TypeError: it is a string, or one of its items is no name.
    """
    if isinstance(channels, str):
        raise TypeError("channels must be a list of names, not one name")
    return [name(channel) for channel in channels]


# permissions


def check_channel(channel: ChannelName, config: Config) -> ChannelOptions:
    """Return the options of a channel that the server API names.

    Raises:
        BadRequest: the name is empty or not ASCII.
        LimitExceeded: it is too long.
        NamespaceNotFound: it names a namespace that is not configured.
    """
    if not channel:
        raise BadRequest
    check_characters(channel)
    check_length(channel, config)
    return options_of(channel, config)


def check_subscribe(channel: str, options: ChannelOptions, user: str, config: Config) -> None:
    """Check that options and name let a user subscribe.

    Hooks are asked after this, and `check_unasked` is for channels where none is. Tokens: in the
    first generation the token of a private channel is checked after this, too. In the second a
    subscription token decides alone, and without one a private channel is refused before this.

    Raises:
        PermissionDenied: the channel is for server-side subscriptions, or not for this user.
    """
    check_client_side(options)
    check_user(options, user, config)
    check_listed(channel, options, user, config)


def check_client_side(options: ChannelOptions) -> None:
    """Check that clients may subscribe at all; raises PermissionDenied."""
    if options.server_side:
        raise PermissionDenied


def check_user(options: ChannelOptions, user: str, config: Config) -> None:
    """Check that a client has a user ID, where it needs one; raises PermissionDenied."""
    if user == "" and not (options.allow_subscribe_for_anonymous or config.client_insecure):
        raise PermissionDenied


def check_listed(channel: str, options: ChannelOptions, user: str, config: Config) -> None:
    """Check that the name of a channel lets a user in; raises PermissionDenied."""
    if not allows_user(channel, options, user, config):
        raise PermissionDenied


def check_unasked(channel: str, options: ChannelOptions, config: Config) -> None:
    """Check that a client may subscribe where neither a token nor a hook decides.

    `check_subscribe` has passed, so a user-limited channel lists the user.

    Raises:
        PermissionDenied: clients need a token or a hook here.
    """
    if not (
        options.allow_subscribe_for_client
        or config.client_insecure
        or is_user_limited(channel, options, config)
    ):
        raise PermissionDenied


def check_data(options: ChannelOptions, data: Payload) -> None:
    """Check that a payload may be published into a channel.

    Raises:
        NotAnObject: `publication_data_format` wants an object, and it is another value.
    """
    if options.publication_data_format == "json_object" and not data.json.startswith(b"{"):
        raise NotAnObject


# rights


def may_read_presence(options: ChannelOptions, user: str) -> bool:
    """Return whether the options let a subscriber read presence, where there is any."""
    return (user != "" or options.allow_presence_for_anonymous) and (
        options.allow_presence_for_client or options.allow_presence_for_subscriber
    )


def may_read_history(options: ChannelOptions, user: str) -> bool:
    """Return whether the options let a subscriber read history, where there is any."""
    return (user != "" or options.allow_history_for_anonymous) and (
        options.allow_history_for_client or options.allow_history_for_subscriber
    )


# what a subscription of the second generation has


def is_recoverable(options: ChannelOptions, user: str, asked: bool, insecure: bool = False) -> bool:
    """Return whether a subscription recovers: every one does, or the client may ask for it.

    Args:
        options: the options of the channel.
        user: the user ID of the client.
        asked: whether the client asks for it.
        insecure: whether `client_insecure` lets every client read history and presence.
    """
    return options.keeps_history and (
        options.force_recovery
        or (asked and (options.allow_recovery or insecure or may_read_history(options, user)))
    )


def is_positioned(options: ChannelOptions, user: str, asked: bool, insecure: bool = False) -> bool:
    """Return whether the position of a subscription is checked, without regard to recovery.

    A recoverable subscription has a position, too. The arguments are those of `is_recoverable`.
    """
    return options.keeps_history and (
        options.force_positioning
        or options.force_recovery
        or (asked and (options.allow_positioning or insecure or may_read_history(options, user)))
    )


def receives_joins(options: ChannelOptions, user: str, asked: bool, insecure: bool = False) -> bool:
    """Return whether a subscriber gets joins and leaves.

    The arguments are those of `is_recoverable`.
    """
    return bool(options.join_leave) and (
        options.force_push_join_leave or (asked and (insecure or may_read_presence(options, user)))
    )
