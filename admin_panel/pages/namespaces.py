"""The options in force, those of each namespace above all. They are read here, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from realtime.config import sources as config_sources
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS, ChannelOptions
from realtime.config.reader import read

from .. import service
from ..panel import PageRequest

ORIGINS: Mapping[str, str | Promise] = {
    "environment": gettext_lazy("environment"),
    "settings": gettext_lazy("settings"),
    "file": gettext_lazy("config file"),
    "override": gettext_lazy("test"),
}
"""`conf.Origin` in words."""

GROUPS: Mapping[str, str | Promise] = {
    "channel_max_length": gettext_lazy("Channel names and users"),
    "client_insecure": gettext_lazy("Client connections"),
    "token_hmac_secret_key": gettext_lazy("Tokens, server API, panel"),
    "engine": gettext_lazy("Engine"),
    "session_authentication": gettext_lazy("The site"),
    "allowed_origins": gettext_lazy("Transports and process"),
}
"""First option of a group, as `Config` orders them, and the group's title."""


class Value(NamedTuple):
    """An option in one place."""

    text: str
    is_default: bool
    is_literal: bool
    """Whether the text is the value itself, and not a word of ours about it."""
    origin: str | Promise = ""
    """Where it is from, in words; "" for a default."""


class ChannelOption(NamedTuple):
    """A channel option, everywhere."""

    name: str
    meaning: str
    default: Value
    values: list[tuple[str, Value]]
    """Namespace ("" for the top level), and its value there."""

    @property
    def is_default(self) -> bool:
        """Whether no place sets it to anything else."""
        return all(value.is_default for _place, value in self.values)


class Option(NamedTuple):
    """An option that is for the whole service."""

    name: str
    meaning: str
    value: Value


class Group(NamedTuple):
    """Options about one subject."""

    title: str | Promise
    options: list[Option]


class Finding(NamedTuple):
    """What a system check says."""

    id: str
    text: str
    hint: str
    is_serious: bool


def show(request: PageRequest) -> HttpResponse:
    """The page; `?set=1` leaves out what nobody set."""
    only_set = "set" in request.http.GET
    config = config_sources.current()
    sources = config_sources.gather()
    groups = [
        Group(title, [option for option in options if not only_set or option.value.origin])
        for title, options in _groups(sources.origins)
    ]
    return request.render(
        "namespaces.html",
        namespaces=list(config.namespaces),
        channel_options=[
            option
            for option in _channel_options(sources.origins)
            if not only_set or not option.is_default
        ],
        namespaces_origin=ORIGINS.get(sources.origins.get("namespaces", ""), ""),
        groups=[group for group in groups if group.options],
        findings=findings(),
        only_set=only_set,
        # the config file may have changed since this process read it
        is_outdated=read(sources.options)[0] != config,
    )


def findings() -> list[Finding]:
    """What the system checks have to say of the options, the serious things first."""
    found = sorted(service.check_messages(), key=lambda message: -message.level)
    return [
        Finding(message.id or "", message.msg, message.hint or "", message.is_serious())
        for message in found
    ]


def value_of(option: Field[Any], value: object, origin: str | Promise = "") -> Value:
    """An option's value as it may be shown: no secret is."""
    text, is_literal = _text(option, value)
    return Value(text, value == option.default, is_literal, origin)


def _text(option: Field[Any], value: object) -> tuple[str, bool]:
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


def _without_password(text: str) -> str:
    """A URL may hold a password, or a key in its query."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    if not parts.scheme or not parts.netloc:
        return text
    _userinfo, at, host = parts.netloc.rpartition("@")
    netloc = f"…@{host}" if at else host
    return parts._replace(netloc=netloc, query="…" if parts.query else "").geturl()


def _channel_options(origins: Mapping[str, config_sources.Origin]) -> list[ChannelOption]:
    config = config_sources.current()
    places: dict[str, ChannelOptions] = {"": config.channel, **config.namespaces}
    return [
        ChannelOption(
            name,
            _meaning(option),
            value_of(option, option.default),
            [
                (
                    place,
                    value_of(
                        option,
                        getattr(options, name),
                        "" if place else ORIGINS.get(origins.get(name, ""), ""),
                    ),
                )
                for place, options in places.items()
            ],
        )
        for name, option in CHANNEL_OPTION_FIELDS.items()
    ]


def _groups(origins: Mapping[str, config_sources.Origin]) -> list[Group]:
    config = config_sources.current()
    groups: list[Group] = []
    for name, option in CONFIG_FIELDS.items():
        if name in GROUPS:
            groups.append(Group(GROUPS[name], []))
        origin = ORIGINS.get(origins.get(name, ""), "")
        value = value_of(option, getattr(config, name), origin)
        groups[-1].options.append(Option(name, _meaning(option), value))
    return groups


def _meaning(option: Field[Any]) -> str:
    """What an option is for, translated where a translation knows the sentence."""
    return _(option.metadata["meaning"])
