"""Rules of channels: which names are valid, which options they have, who may do what.

Names are never changed: no trimming, no case folding. The markers (private prefix, namespace
boundary, user boundary, user separator) are options; an empty marker turns its feature off.

docs/protocol.md, 1.
"""

from __future__ import annotations

from collections.abc import Iterable

from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    BadRequest,
    LimitExceeded,
    NamespaceNotFound,
    NotAvailable,
    PermissionDenied,
)
from realtime.protocol.messages import ChannelName

INTERNAL = "§"
"""First character of the service's own channels. Channels of clients are ASCII."""

CONTROL: ChannelName = f"{INTERNAL}control"
"""The stream of control messages."""

QUESTIONS: ChannelName = f"{INTERNAL}questions"
"""The channel of surveys: questions to all nodes."""

INTERNAL_OPTIONS = ChannelOptions()
"""The options of internal channels that keep nothing: of questions and inboxes."""


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


def check_length(channel: str, config: Config) -> None:
    """Refuse a name longer than `channel_max_length`.

    Raises:
        LimitExceeded: it is longer.
    """
    if config.channel_max_length > 0 and len(channel) > config.channel_max_length:
        raise LimitExceeded


def namespace_of(channel: str, config: Config) -> str:
    """Return the namespace a channel names, known or not; "" for a channel of the top level.

    ":a" names the empty namespace, so it belongs to the top level too.
    """
    boundary = config.channel_namespace_boundary
    if not boundary or boundary not in channel:
        return ""
    # the prefix may contain the boundary: with the prefix "p:", "p:chat" is of the top level
    namespace, found, _ = channel.removeprefix(config.channel_private_prefix).partition(boundary)
    return namespace if found else ""


def options_of(channel: str, config: Config) -> ChannelOptions:
    """Return the options of a channel.

    Raises:
        NamespaceNotFound: the channel names a namespace that is not configured.
    """
    options = config.options_of_namespace(namespace_of(channel, config))
    if options is None:
        raise NamespaceNotFound
    return options


def is_private(channel: str, config: Config) -> bool:
    """Return whether a subscription needs a subscription token."""
    prefix = config.channel_private_prefix
    return bool(prefix) and channel.startswith(prefix)


def is_user_limited(channel: str, config: Config) -> bool:
    """Return whether only the users that the name lists may subscribe."""
    boundary = config.channel_user_boundary
    return bool(boundary) and boundary in channel


def listed_users(channel: str, config: Config) -> list[str]:
    """Return the user IDs in the name of a user-limited channel: what follows the user boundary.

    Returns:
        An empty list if the name has several boundaries: it may be that of user "a#b", or of user
        "b", and no user may read what is meant for another.
    """
    boundary, separator = config.channel_user_boundary, config.channel_user_separator
    at = channel.find(boundary)
    if at != channel.rfind(boundary):
        return []
    users = channel[at + len(boundary) :]
    return users.split(separator) if separator else [users]


def can_be_listed(user: str, config: Config) -> bool:
    """Return whether the name of a channel can list this user.

    No name can list an ID that contains the user boundary or the user separator.
    """
    boundary, separator = config.channel_user_boundary, config.channel_user_separator
    if not boundary:
        return False
    names = [user, user] if separator else [user]
    return listed_users(boundary + separator.join(names), config) == names


def allows_user(channel: str, user: str, config: Config) -> bool:
    """Return whether the name of a channel lets this user in."""
    return not is_user_limited(channel, config) or user in listed_users(channel, config)


def personal_channel(user: str, config: Config) -> str:
    """Return the name of a user's personal channel, for example "pp:#17" or "#17"."""
    namespace = config.user_personal_channel_namespace
    prefix = f"{namespace}{config.channel_namespace_boundary}" if namespace else ""
    return f"{prefix}{config.channel_user_boundary}{user}"


def name(channel: object) -> ChannelName:
    """Check the name of a channel that the site's code passes, and return it as a plain string.

    Raises:
        TypeError: it is not a string.
    """
    if not isinstance(channel, str):
        raise TypeError(f"a channel name must be a string, not {type(channel).__name__}")
    return str.__str__(channel)  # members of TextChoices and safe strings are more than text


def names(channels: Iterable[str]) -> list[ChannelName]:
    """Check a list of channel names that the site's code passes.

    Raises:
        TypeError: it is a string, or one of its items is not a string.
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
    """Check that options and name let a user subscribe. Tokens and hooks are checked after this.

    Raises:
        PermissionDenied: the channel is for server-side subscriptions, or not for this user.
    """
    if options.server_side:
        raise PermissionDenied
    if user == "" and not (options.anonymous or config.client_insecure):
        raise PermissionDenied
    if not allows_user(channel, user, config):
        raise PermissionDenied


def check_publish(options: ChannelOptions, subscribed: bool, config: Config) -> None:
    """Check that a client may publish into a channel.

    Beyond the spec: private and user-limited names do not restrict publishing.

    Raises:
        PermissionDenied: clients may not publish, or only subscribers may.
    """
    if not (options.publish or config.client_insecure):
        raise PermissionDenied
    if options.subscribe_to_publish and not subscribed:
        raise PermissionDenied


def check_presence(options: ChannelOptions, subscribed: bool) -> None:
    """Check that a client may read presence and presence_stats.

    Raises:
        NotAvailable: presence is off, or off for clients.
        PermissionDenied: the client is not subscribed.
    """
    if not options.presence or options.presence_disable_for_client:
        raise NotAvailable
    if not subscribed:
        raise PermissionDenied


def check_history(options: ChannelOptions, subscribed: bool) -> None:
    """Check that a client may read history.

    Raises:
        NotAvailable: the channel has no history, or none for clients.
        PermissionDenied: the client is not subscribed.
    """
    if not options.keeps_history or options.history_disable_for_client:
        raise NotAvailable
    if not subscribed:
        raise PermissionDenied
