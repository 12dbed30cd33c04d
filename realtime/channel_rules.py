"""Read a channel name: is it valid, which options does it have, who is it for.

Names are never changed: no trimming, no case folding. The markers (private prefix,
namespace boundary, user boundary, user separator) are options; an empty marker turns its
feature off.

Spec: Channel.
"""

from __future__ import annotations

from collections.abc import Iterable

from realtime import channel_rules
from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    BadRequest,
    LimitExceeded,
    NamespaceNotFound,
    NotAvailable,
    PermissionDenied,
)
from realtime.protocol.messages import (
    ChannelName,
)


def check_characters(channel: str) -> None:
    """Refuse a name that is not ASCII.

    Raises:
        BadRequest: the specification allows ASCII only.
    """
    if not channel.isascii():
        raise BadRequest


def check_length(channel: str, config: Config) -> None:
    """Refuse a name longer than `channel_max_length`.

    Raises:
        LimitExceeded
    """
    if config.channel_max_length > 0 and len(channel) > config.channel_max_length:
        raise LimitExceeded


def namespace_of(channel: str, config: Config) -> str:
    """The namespace a channel names, known or not; "" for a channel of the top level.

    ":a" has an empty name in front of its boundary, so it is of the top level, too.
    """
    boundary = config.channel_namespace_boundary
    if not boundary or boundary not in channel:
        return ""
    # with the prefix a boundary may go, too: "p:chat" is of the top level where "p:" is the prefix
    namespace, found, _ = channel.removeprefix(config.channel_private_prefix).partition(boundary)
    return namespace if found else ""


def options_of(channel: str, config: Config) -> ChannelOptions:
    """The options in force for a channel.

    Raises:
        NamespaceNotFound: the name has a namespace that is not configured.
    """
    options = config.options_of_namespace(namespace_of(channel, config))
    if options is None:
        raise NamespaceNotFound
    return options


def is_private(channel: str, config: Config) -> bool:
    """Whether a subscription needs a token of the application."""
    prefix = config.channel_private_prefix
    return bool(prefix) and channel.startswith(prefix)


def is_user_limited(channel: str, config: Config) -> bool:
    """Whether only the users named in the channel may subscribe."""
    boundary = config.channel_user_boundary
    return bool(boundary) and boundary in channel


def allows_user(channel: str, user: str, config: Config) -> bool:
    """Whether the name leaves this user in. Only what follows its last user boundary counts."""
    if not is_user_limited(channel, config):
        return True
    users = channel.rpartition(config.channel_user_boundary)[2]
    separator = config.channel_user_separator
    return user in (users.split(separator) if separator else [users])


def personal_channel(user: str, config: Config) -> str:
    """The name of a user's personal channel, for example "pp:#17" or "#17"."""
    namespace = config.user_personal_channel_namespace
    prefix = f"{namespace}{config.channel_namespace_boundary}" if namespace else ""
    return f"{prefix}{config.channel_user_boundary}{user}"


def names(channels: Iterable[str]) -> list[str]:
    """The names in a list of channels, as the site's code hands it over.

    Raises:
        TypeError: it is one name, or something in it is no text.
    """
    if isinstance(channels, str):
        raise TypeError("channels is a list of names, not one name")
    found = list(channels)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"a channel has a name, not {type(name).__name__}")
    return found


INTERNAL = "§"
"""Begins the channels of the service itself. No client can name them: channel names are ASCII."""


CONTROL: ChannelName = f"{INTERNAL}control"
"""The stream that tells every node what to do."""


QUESTIONS: ChannelName = f"{INTERNAL}questions"
"""The channel of what is asked of every node."""


def mailbox(node: str) -> ChannelName:
    """The channel of what others say to one node alone."""
    return f"{INTERNAL}node:{node}"


def check_channel(channel: ChannelName, config: Config) -> ChannelOptions:
    """The options of a channel the server API names.

    Raises:
        BadRequest, NamespaceNotFound
    """
    if not channel:
        raise BadRequest
    channel_rules.check_characters(channel)
    return channel_rules.options_of(channel, config)


def check_subscribe(channel: str, options: ChannelOptions, user: str, config: Config) -> None:
    """May this user subscribe, as far as options and name tell?

    Tokens of private channels and hooks are asked afterwards.

    Raises:
        PermissionDenied
    """
    if options.server_side:
        raise PermissionDenied
    if user == "" and not (options.anonymous or config.client_insecure):
        raise PermissionDenied
    if not allows_user(channel, user, config):
        raise PermissionDenied


def check_publish(options: ChannelOptions, subscribed: bool, config: Config) -> None:
    """May a client publish into the channel?

    Beyond the spec: private and user-limited names do not restrict publishing.

    Raises:
        PermissionDenied
    """
    if not (options.publish or config.client_insecure):
        raise PermissionDenied
    if options.subscribe_to_publish and not subscribed:
        raise PermissionDenied


def check_presence(options: ChannelOptions, subscribed: bool) -> None:
    """May a client read presence and presence_stats?

    Raises:
        NotAvailable: presence is off, or off for clients.
        PermissionDenied: the client is not subscribed.
    """
    if not options.presence or options.presence_disable_for_client:
        raise NotAvailable
    if not subscribed:
        raise PermissionDenied


def check_history(options: ChannelOptions, subscribed: bool) -> None:
    """May a client read history?

    Raises:
        NotAvailable: there is no history, or not for clients.
        PermissionDenied: the client is not subscribed.
    """
    if not options.keeps_history or options.history_disable_for_client:
        raise NotAvailable
    if not subscribed:
        raise PermissionDenied
