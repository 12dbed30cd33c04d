"""Who may do what: the channel options and the user's identity, nothing else.

Spec: Authentication, Client connection; Channel options.
"""

from __future__ import annotations

from realtime.channel import allows_user
from realtime.errors import NotAvailable, PermissionDenied
from realtime.options import ChannelOptions, Config


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
