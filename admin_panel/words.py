"""Texts that several pages show: time spans, and what options and name say about a channel."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone
from django.utils.formats import date_format, number_format, time_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from realtime.channel_rules import is_private, is_user_limited
from realtime.config.options import CHANNEL_OPTION_FIELDS, ChannelOptions, Config

from . import service


def duration(seconds: float) -> str:
    """Return a time span in its two largest units, for example "3 days, 4 hours"."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [
        (days, ngettext("%d day", "%d days", days)),
        (hours, ngettext("%d hour", "%d hours", hours)),
        (minutes, ngettext("%d minute", "%d minutes", minutes)),
        (rest, ngettext("%d second", "%d seconds", rest)),
    ]
    largest = next((i for i, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = [text % count for count, text in parts[largest : largest + 2] if count]
    return ", ".join(shown) or parts[-1][1] % 0


def age(seconds: float) -> str:
    """Return a time that goes on, in words that do not change every second.

    Below a minute in seconds, below a day in hours and minutes, above in days and hours.
    """
    whole = max(0, int(seconds))
    if whole < 60:
        return duration(whole)
    return duration(whole - whole % 60 if whole < 86400 else whole - whole % 3600)


def moment(at: datetime) -> str:
    """Return a moment of today with its seconds, another one with its day."""
    local, today = timezone.localtime(at), timezone.localtime()
    if local.date() == today.date():
        return time_format(local, "H:i:s")
    return f"{date_format(local, 'SHORT_DATE_FORMAT')} {time_format(local, 'H:i')}"


def close_code(code: str) -> str:
    """Return what a close code of connections means, in the words of the log; "" if it is a site's.

    Some codes mean one thing for older clients and another one for newer ones.
    """
    if code == "0":
        return _("the client went")
    return " / ".join(service.close_reasons(code))


class Word(NamedTuple):
    """A property of a channel in a few words, and a sentence that explains it."""

    text: str
    meaning: str


SWITCHES: Mapping[str, str | Promise] = {
    "presence": gettext_lazy("presence"),
    "join_leave": gettext_lazy("joins and leaves"),
    "publish": gettext_lazy("clients publish"),
    "subscribe_to_publish": gettext_lazy("only subscribers publish"),
    "anonymous": gettext_lazy("anonymous clients"),
    "server_side": gettext_lazy("server-side only"),
    "presence_disable_for_client": gettext_lazy("presence hidden from clients"),
    "history_disable_for_client": gettext_lazy("history hidden from clients"),
    "proxy_subscribe": gettext_lazy("site decides on subscribing"),
    "proxy_publish": gettext_lazy("site decides on publishing"),
}
"""Option → its text where it is on."""


def words_of(options: ChannelOptions) -> list[Word]:
    """Return the options of a channel that are on, history first."""
    words = []
    if options.keeps_history:
        text = ngettext(
            "history of %(count)s for %(time)s",
            "history of %(count)s for %(time)s",
            options.history_size,
        )
        values = {
            "count": number_format(options.history_size, force_grouping=True),
            "time": duration(options.history_lifetime),
        }
        words.append(Word(text % values, _meaning("history_size")))
        if options.history_recover:
            words.append(Word(_("recovery"), _meaning("history_recover")))
    if options.map:
        words.append(Word(_("map, %(kind)s") % {"kind": options.map}, _meaning("map")))
    words.extend(
        Word(str(text), _meaning(name)) for name, text in SWITCHES.items() if getattr(options, name)
    )
    return words


def kinds_of(channel: str, options: ChannelOptions, config: Config) -> list[Word]:
    """Return what the name of a channel says about its subscribers."""
    words = []
    if is_private(channel, config):
        words.append(Word(_("private"), _("A subscription needs a token from the site.")))
    if is_user_limited(channel, options, config):
        words.append(Word(_("for certain users"), _("Only the users in its name may subscribe.")))
    return words


def _meaning(option: str) -> str:
    meaning: str = CHANNEL_OPTION_FIELDS[option].metadata["meaning"]
    return meaning
