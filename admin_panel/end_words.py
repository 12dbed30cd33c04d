"""Codes in words: why connections ended, why commands were refused; and browsers by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

ENDS: Mapping[str, str | Promise] = {
    "": _("The client went: the page was closed, or the network was lost."),
    "normal": _("The connection was closed as usual."),
    "blocked": _("The user is blocked, so the connection was refused."),
    "shutdown": _("The node stopped. Clients connect to another one."),
    "invalid token": _("The token was not valid, or was for another user, client or channel."),
    "bad request": _("The client sent something that the protocol does not allow."),
    "permission denied": _("The client may not connect."),
    "internal server error": _("The service failed. The log of the node has the reason."),
    "expired": _("The connection was not refreshed in time: the client got no new token."),
    "subscription expired": _("A subscription was not refreshed in time."),
    "stale": _("The client did not send its connect command in time."),
    "slow": _("The client did not read as fast as the service sent."),
    "insufficient state": _("Publications were missing. The client reconnects and recovers."),
    "force disconnect": _("An operator, the site or a logout closed the connection."),
    "connection limit": _("The user had too many connections."),
    "channel limit": _("The client would have had too many subscriptions."),
    "message too big": _("The client sent a message that was too large."),
    "no pong": _("The client did not answer a ping in time."),
    "too many requests": _("The client sent more than it may."),
}
"""Reason of a disconnect → what it means."""

REFUSALS: Mapping[int, str | Promise] = {
    100: _("The service or a hook failed. The log of the node has the reason."),
    102: _("The namespace of the channel is not configured."),
    103: _("The options, a token or the site do not allow it."),
    104: _("There is no such command."),
    105: _("The client was subscribed already."),
    106: _("Too many subscriptions, or too long a name."),
    107: _("The request was malformed."),
    108: _("The feature is off in this channel."),
    109: _("The token had expired."),
    110: _("The expiry lay in the past."),
    111: _("The client sent too much, or the process was overloaded."),
    112: _("Nothing can be read from that position."),
}
"""Code of an error → what it means."""

BROWSERS = ("Edg", "OPR", "SamsungBrowser", "Firefox", "FxiOS", "CriOS", "Chrome", "Safari")
"""Words of the header User-Agent, the more special ones first: most browsers name others, too."""

NAMES = {"Edg": "Edge", "OPR": "Opera", "FxiOS": "Firefox", "CriOS": "Chrome"}

_FIRST = re.compile(r"[\w.+-]+(?:/[\d.]+)?")


def end_in_words(code: int, reason: str) -> str | Promise:
    """Return why a connection ended; the reason itself if it is one of the site."""
    return ENDS.get("" if not code else reason, reason)


def refusal_in_words(code: int) -> str | Promise:
    """Return why a command was refused; "" for a code of the site."""
    return REFUSALS.get(code, "")


def browser_of(agent: str) -> str:
    """Return the browser or the program that a header User-Agent names; "" for none."""
    for word in BROWSERS:
        found = re.search(rf"\b{word}/(\d+)", agent)
        if found is not None:
            number = found[1]
            if word == "Safari" and (version := re.search(r"Version/(\d+)", agent)):
                number = version[1]
            return f"{NAMES.get(word, word)} {number}"
    first = _FIRST.match(agent)
    return "" if first is None else first[0]
