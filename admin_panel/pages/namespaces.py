"""The options in force, above all those of each namespace. The page does not change them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from realtime.config import sources as config_sources
from realtime.config.fields import as_seconds
from realtime.config.merging import Origin
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS, ChannelOptions
from realtime.config.reader import read

from .. import service
from ..panel import PageRequest
from ..words import duration

ORIGINS: Mapping[str, str | Promise] = {
    "environment": gettext_lazy("environment"),
    "settings": gettext_lazy("settings"),
    "defaults": gettext_lazy("settings"),
    "file": gettext_lazy("config file"),
    "override": gettext_lazy("test"),
}
"""Source of an option → its name."""

GROUPS: Mapping[str, str | Promise] = {
    "channel_max_length": gettext_lazy("Channel names and users"),
    "client_insecure": gettext_lazy("Client connections"),
    "token_hmac_secret_key": gettext_lazy("Tokens, server API, panel"),
    "engine": gettext_lazy("Engine"),
    "session_authentication": gettext_lazy("The site"),
    "allowed_origins": gettext_lazy("Transports and process"),
}
"""First option of a group, in the order of `Config` → title of the group."""


LONGEST_SEARCH = 255
"""Characters of a search."""

ADDRESSES = ("redis_url", "redis_cluster_addrs")
"""Secret options of which the addresses are shown, because only a password in them is a secret."""

_ADDRESS = re.compile(
    r"rediss?://(?:…@)?(?:\w[\w.-]*|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?(?:/[0-9]*)?(?:\?…)?"
    r"|\w[\w.-]*:[0-9]{1,5}"
)
"""An address without its password. What looks otherwise may hold one, and is not shown."""


class Value(NamedTuple):
    """The value of an option in one place."""

    text: str
    is_default: bool
    is_literal: bool
    """Whether the text is the value itself, and not a word such as "on"."""
    origin: str | Promise = ""
    """Name of its source; "" for a default."""
    written: str = ""
    """For a time that the text has in words: its seconds, as they are configured."""


class ChannelOption(NamedTuple):
    """A channel option in all places."""

    name: str
    meaning: str
    default: Value
    values: list[tuple[str, Value]]
    """Namespace, "" for the top level, and the value there."""

    @property
    def is_default(self) -> bool:
        """Whether it has its default everywhere."""
        return all(value.is_default for _place, value in self.values)


class Option(NamedTuple):
    """An option of the whole service."""

    name: str
    meaning: str
    value: Value


class OptionGroup(NamedTuple):
    """Options about one subject."""

    title: str | Promise
    options: list[Option]


def show(request: PageRequest) -> HttpResponse:
    """Show the page; `?set=1` leaves out options that are not set, `?q=` those without a text."""
    only_set = "set" in request.http.GET
    search = request.http.GET.get("q", "").strip()[:LONGEST_SEARCH]
    config = config_sources.current()
    sources = config_sources.gather()

    def is_shown(option: Option | ChannelOption, is_set: object) -> bool:
        return bool(is_set or not only_set) and _matches(option.name, option.meaning, search)

    groups = [
        OptionGroup(title, [each for each in options if is_shown(each, each.value.origin)])
        for title, options in _groups(sources.origins)
    ]
    channel_options = _channel_options(sources.origins)
    return request.render(
        "namespaces.html",
        namespaces=list(config.namespaces),
        channel_options=[each for each in channel_options if is_shown(each, not each.is_default)],
        namespaces_origin=ORIGINS.get(sources.origins.get("namespaces", ""), ""),
        groups=[group for group in groups if group.options],
        findings=sorted(service.check_messages(), key=lambda message: -message.level),
        only_set=only_set,
        search=search,
        # the config file may have changed since this process read it
        is_outdated=read(sources.options)[0] != config,
    )


def find_options(search: str) -> list[str]:
    """Return the options that a search of this page finds; names that hold the text come first."""
    fields = {**CHANNEL_OPTION_FIELDS, **CONFIG_FIELDS}
    found = [name for name, each in fields.items() if _matches(name, _meaning(each), search)]
    return sorted(found, key=lambda name: search.casefold() not in name)


def _matches(name: str, meaning: str, search: str) -> bool:
    """Return whether the name or the meaning of an option contains a text, ignoring case."""
    text = f"{name} {meaning}".casefold()
    return all(word in text for word in search.casefold().split())


def value_of(option: Field[Any], value: object, origin: str | Promise = "") -> Value:
    """Return the value of an option for the page, without secrets."""
    text, is_literal = _text(option, value)
    is_default = value == option.default
    if option.metadata.get("convert") is as_seconds and (words := _time(value)):
        return Value(words, is_default, False, origin, text)
    return Value(text, is_default, is_literal, origin)


def _time(seconds: object) -> str:
    """Return a minute or more in words; "" if they would not be exact."""
    if not isinstance(seconds, int | float) or seconds < 60 or seconds % 60:
        return ""
    minutes = int(seconds) // 60
    is_exact = minutes < 1440 or minutes % 60 == 0  # words have two units
    return duration(seconds) if is_exact else ""


def _text(option: Field[Any], value: object) -> tuple[str, bool]:
    if option.name in ADDRESSES and (addresses := _addresses(str(value))):
        return addresses, True
    if not option.repr:
        return (_("set, not shown") if value else _("not set")), False
    match value:
        case None:
            return _("not set"), False
        case bool():
            return (_("on") if value else _("off")), False
        case "":
            return _("empty"), False
        case ():
            return _("none"), False
        case tuple():
            return " ".join(value), True
        case str():
            return _without_password(value), True
    return str(value), True


def _addresses(text: str) -> str:
    """Return addresses without their passwords; "" if it is not certain that none is left."""
    shown = [_without_password(address.strip()) for address in text.split(",")]
    return ", ".join(shown) if all(map(_ADDRESS.fullmatch, shown)) else ""


def _without_password(text: str) -> str:
    """Hide the password and the query of a URL."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    if not parts.scheme or not parts.netloc:
        return text
    _userinfo, at, host = parts.netloc.rpartition("@")
    netloc = f"…@{host}" if at else host
    return parts._replace(netloc=netloc, query="…" if parts.query else "").geturl()


def _channel_options(origins: Mapping[str, Origin]) -> list[ChannelOption]:
    config = config_sources.current()
    places: dict[str, ChannelOptions] = {"": config.channel, **config.namespaces}
    found: list[ChannelOption] = []
    for name, option in CHANNEL_OPTION_FIELDS.items():
        values: list[tuple[str, Value]] = []
        for place, options in places.items():
            origin = "" if place else ORIGINS.get(origins.get(name, ""), "")
            value = value_of(option, getattr(options, name), origin)
            if option.default is None:
                follows = getattr(_by_older_names(options), name)
                value = value._replace(is_default=getattr(options, name) == follows)
            values.append((place, value))
        default = value_of(option, getattr(ChannelOptions(), name))
        found.append(ChannelOption(name, _meaning(option), default, values))
    return found


def _by_older_names(options: ChannelOptions) -> ChannelOptions:
    """Return what the options would be if the newer names that have no default were not given."""
    given = {
        name: getattr(options, name)
        for name, option in CHANNEL_OPTION_FIELDS.items()
        if option.default is not None
    }
    return ChannelOptions(**given)


def _groups(origins: Mapping[str, Origin]) -> list[OptionGroup]:
    config = config_sources.current()
    groups: list[OptionGroup] = []
    for name, option in CONFIG_FIELDS.items():
        if name in GROUPS:
            groups.append(OptionGroup(GROUPS[name], []))
        origin = ORIGINS.get(origins.get(name, ""), "")
        value = value_of(option, config.value_of(name), origin)
        groups[-1].options.append(Option(name, _meaning(option), value))
    return groups


def _meaning(option: Field[Any]) -> str:
    """Return the meaning of an option, translated if a translation exists."""
    return _(option.metadata["meaning"])
