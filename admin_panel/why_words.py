"""The words of the page "Why?": what each check is about, and what it means that it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class CheckWords(NamedTuple):
    """A check in words."""

    passes: str | Promise
    """What is so when it passes."""
    refuses: str | Promise
    """What is so when it refuses, and what helps."""


def room_in_words(subscriptions: Sequence[int] | None, limit: int) -> str:
    """Return how many connections of a user have room for one more subscription.

    Args:
        subscriptions: how many each has; None if no connection is known.
        limit: how many a connection may have.
    """
    if not subscriptions:
        return gettext("It cannot be said: no connection of the user is known.")
    room = sum(number < limit for number in subscriptions)
    text = gettext("Connections that have room: %(room)d of %(all)d.")
    return text % {"room": room, "all": len(subscriptions)}


CHECKS: Mapping[str, CheckWords] = {
    "blocked": CheckWords(
        _("The user is not blocked"),
        _("The user is blocked: connections are closed, and new ones refused."),
    ),
    "personal": CheckWords(
        _("The user can have a personal channel"),
        _(
            "The user's ID has a character that divides names of channels, so it can have no"
            " personal channel, and the user cannot connect."
        ),
    ),
    "characters": CheckWords(
        _("The name consists of ASCII characters"),
        _("The name has a character that is not ASCII."),
    ),
    "length": CheckWords(
        _("The name is not too long"),
        _("The name is longer than the option allows."),
    ),
    "limit": CheckWords(
        _("The connection has room for one more subscription"),
        _("The connection has as many subscriptions as it may."),
    ),
    "room": CheckWords(
        _("The user has room for one more subscription"),
        _("The user has as many subscriptions at this node as one may."),
    ),
    "namespace": CheckWords(
        _("The namespace is configured"),
        _("No namespace of this name is configured."),
    ),
    "pattern": CheckWords(
        _("The name matches the pattern of its namespace"),
        _("The name does not match the regular expression of its namespace."),
    ),
    "token given": CheckWords(
        _("A private channel: the client sends a subscription token"),
        _(
            "The channel is private: a client needs a subscription token, which the site makes."
            " Without one it is refused."
        ),
    ),
    "client side": CheckWords(
        _("Clients may subscribe by themselves"),
        _("Only the server subscribes clients to such channels."),
    ),
    "user": CheckWords(
        _("The client has a user ID, or needs none"),
        _("The client has no user ID, and anonymous clients may not subscribe."),
    ),
    "listed": CheckWords(
        _("The name of the channel lists the user"),
        _("The channel is for the users in its name alone, and this user is not one of them."),
    ),
    "token": CheckWords(
        _("The subscription token is valid"),
        _("The subscription token is missing, or not valid."),
    ),
    "open": CheckWords(
        _("Clients may subscribe without a token"),
        _("Clients need a subscription token here, or a hook of the site that lets them in."),
    ),
    "function": CheckWords(
        _("The hook of the site decides"),
        "",
    ),
    "endpoint": CheckWords(
        _("The endpoint of the site decides"),
        "",
    ),
    "site": CheckWords(_("The site decides"), ""),
    "site missing": CheckWords(
        _("The site has a hook or an endpoint for it"),
        _("The options say that the site decides, but it has neither a hook nor an endpoint."),
    ),
    "unmatched": CheckWords(
        _("The pattern of a hook matches the channel"),
        _("The namespace of the channel has hooks, and the pattern of none matches the channel."),
    ),
    "publishing": CheckWords(
        _("Clients may publish"),
        _("Clients may not publish into such channels. Code of the site may."),
    ),
    "publisher": CheckWords(
        _("The publisher has a user ID, or needs none"),
        _("The client has no user ID, and anonymous clients may not publish."),
    ),
    "subscribed publisher": CheckWords(
        _("The publisher is subscribed to the channel"),
        _("Only subscribers of the channel may publish, and the client is none."),
    ),
    "no map": CheckWords(
        _("The channel is no map"),
        _("The channel is a map. Clients change its keys, and do not publish into it."),
    ),
    "map": CheckWords(
        _("The channel is a map"),
        _("The channel is no map, and has no keys to change."),
    ),
    "putting": CheckWords(
        _("Clients may change keys"),
        _("Clients may not change keys of such maps. Code of the site may."),
    ),
    "subscribed putter": CheckWords(
        _("The client is subscribed to the map, or need not be"),
        _("Only subscribers of the map may change its keys, and the client is none."),
    ),
    "user as key": CheckWords(
        _("The client has the user ID that is its key, or needs none"),
        _("The key is the user ID, and the client has none."),
    ),
    "presence": CheckWords(
        _("The channel has presence"),
        _("Presence is off in such channels."),
    ),
    "shown presence": CheckWords(
        _("Clients may read presence"),
        _("Presence is for the server API alone."),
    ),
    "reader of presence": CheckWords(
        _("The reader has a user ID, or needs none"),
        _("The client has no user ID, and anonymous clients may not read presence."),
    ),
    "subscribed to presence": CheckWords(
        _("The reader is subscribed to the channel, or may read without"),
        _("The client is not subscribed to the channel, or subscribers may not read presence."),
    ),
    "history": CheckWords(
        _("The channel keeps history"),
        _("The channel keeps no history: that needs a size and a lifetime."),
    ),
    "shown history": CheckWords(
        _("Clients may read history"),
        _("History is for the server API alone. Clients still recover from it."),
    ),
    "reader of history": CheckWords(
        _("The reader has a user ID, or needs none"),
        _("The client has no user ID, and anonymous clients may not read history."),
    ),
    "subscribed to history": CheckWords(
        _("The reader is subscribed to the channel, or may read without"),
        _("The client is not subscribed to the channel, or subscribers may not read history."),
    ),
}
"""Check → its words. Names as in `realtime.clients.checks`, and those of `explaining`."""

ACTIONS: Mapping[str, str | Promise] = {
    "subscribe": _("Subscribe"),
    "publish": _("Publish"),
    "presence": _("Read presence"),
    "history": _("Read history"),
}
"""Action → its name."""
