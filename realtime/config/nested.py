"""Config files with nested names, as Centrifugo 6 has them: `client.token.hmac_secret_key`.

Such a file has an object where a file of Centrifugo 2 has a value. It becomes a mapping of the
options of this service, which `reader` reads as any other. What is off there unless it is named is
off here as well: channels are closed, and only the origins in the file may connect.

An option that is left out could open something. So what is not supported and would close something
is a mistake unless it is off; what changes nothing that clients may do is only reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypeAlias

from realtime.config.names import option_of
from realtime.config.nested_names import (
    CHANNEL_OPTIONS,
    CHANNEL_UNSUPPORTED,
    CHANNEL_UNUSED,
    CLOSED,
    OFF,
    OPTIONS,
    PROXY_PATHS,
    SECTIONS,
    SWITCHED,
    UNSUPPORTED,
    UNUSED,
)
from realtime.config.options import find_option
from realtime.config.problems import Problem

Kind: TypeAlias = Literal["option", "unused", "unsupported", "unknown"]


class FileOption(NamedTuple):
    """An option of a config file with nested names, and what it is here."""

    name: str
    """Its path, such as `client.token.hmac_secret_key`."""
    kind: Kind
    meaning: str
    """The option that it is, or why it has no effect."""


class Translation(NamedTuple):
    """A config file with nested names, as options of this service."""

    options: dict[str, object]
    file_options: list[FileOption]
    problems: list[Problem]
    assumed: set[str]
    """The options that the file does not name, and that are off in such a file."""


def is_nested(content: Mapping[str, object]) -> bool:
    """Return whether the content of a config file has nested names."""
    return any(isinstance(content.get(section), Mapping) for section in SECTIONS)


def translate(content: Mapping[str, Any]) -> Translation:
    """Return what a file with nested names means here.

    Problems name the path of an option, and never its value, which may be a secret.
    """
    translation = Translation({}, [], [], set())
    for path, value in _leaves(content):
        _translate(path, value, translation)
    channel = content.get("channel")
    channel = channel if isinstance(channel, Mapping) else {}
    _translate_channels(channel, translation)
    _translate_proxies(content, translation)
    if _at(content, "client.subscription_token.enabled") is not True:
        for name in [name for name in translation.options if name.startswith(_SUBSCRIPTION_TOKEN)]:
            del translation.options[name]  # there, the switch decides
    translation.options.setdefault("allowed_origins", [])
    return translation


def _leaves(content: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        name = f"{path}{key}"
        if name in ("channel.namespaces", "channel.without_namespace"):
            continue
        if isinstance(value, Mapping) and name not in OPTIONS:
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _translate(path: str, value: Any, translation: Translation) -> None:
    if path in OPTIONS:
        _set(path, OPTIONS[path], _converted(path, value), translation)
    elif option := _PROXY_SWITCHES.get(path) or _PROXY_HEADERS.get(path):
        translation.file_options.append(FileOption(path, "option", option))
    elif find_option(path):
        _set(path, path, value, translation)
    elif path not in UNUSED and (reason := _found(path, UNSUPPORTED)):
        _not_supported(path, value, reason, translation)
    elif reason := _found(path, UNUSED):
        translation.file_options.append(FileOption(path, "unused", reason))
    else:
        _unknown(path, [*OPTIONS, *UNUSED, *UNSUPPORTED], translation)


def _set(path: str, option: str, value: Any, translation: Translation) -> None:
    given = [each.name for each in translation.file_options if each.meaning == option_of(option)]
    if given:
        # one of them would win, and the file does not show which
        translation.problems.append(
            Problem(
                "E001",
                f"The options {given[0]} and {path} of the config file are one option.",
                "Keep one of them.",
            )
        )
    translation.options[option] = value
    translation.file_options.append(FileOption(path, "option", option_of(option)))


def _found(path: str, table: Mapping[str, str]) -> str:
    """Return what a table says about a path, or about the beginning of it; "" if nothing."""
    while path:
        if path in table:
            return table[path]
        path = path.rpartition(".")[0]
    return ""


def _not_supported(path: str, value: Any, reason: str, translation: Translation) -> None:
    translation.file_options.append(FileOption(path, "unsupported", reason))
    is_detail = path.startswith(tuple(f"{section}." for section in SWITCHED))
    if value not in OFF and (path.endswith(".enabled") or not is_detail):
        translation.problems.append(
            Problem(
                "E043",
                f"The option {path} of the config file is not supported: {reason}.",
                "Turn it off, or remove it from the file.",
            )
        )


def _unknown(path: str, known: list[str], translation: Translation) -> None:
    similar = get_close_matches(path, known, n=1)
    hint = f"Did you mean {similar[0]}?" if similar else "Remove it from the file."
    translation.file_options.append(FileOption(path, "unknown", hint))
    translation.problems.append(Problem("E002", f"Unknown option {path} in the config file.", hint))


def _converted(path: str, value: Any) -> Any:
    if path != "engine.redis.address":
        return value
    addresses = value.split(",") if isinstance(value, str) else value
    if not isinstance(addresses, list) or not all(isinstance(each, str) for each in addresses):
        return value  # `reader` says that it is no string
    return ",".join(each if "://" in each else f"redis://{each}" for each in addresses if each)


# channels


def _translate_channels(channel: Mapping[str, Any], translation: Translation) -> None:
    top_level = channel.get("without_namespace", {})
    if isinstance(top_level, Mapping):
        options = _channel_options("channel.without_namespace", top_level, translation)
        translation.options.update(options)
        translation.assumed.update(options.keys() - top_level.keys())
    else:
        translation.problems.append(_wrong_type("channel.without_namespace", "an object"))
    namespaces = channel.get("namespaces")
    if namespaces is None:
        return
    if not isinstance(namespaces, list) or not all(isinstance(i, Mapping) for i in namespaces):
        translation.problems.append(_wrong_type("channel.namespaces", "a list of objects"))
        return
    translation.options["namespaces"] = [
        {"name": item.get("name")}
        | _channel_options(f"channel.namespaces[{item.get('name')}]", item, translation)
        for item in namespaces
    ]


def _wrong_type(path: str, kind: str) -> Problem:
    return Problem(
        "E003", f"The option {path} of the config file must be {kind}.", "Correct the file."
    )


def _channel_options(
    place: str, item: Mapping[str, Any], translation: Translation
) -> dict[str, object]:
    options: dict[str, object] = dict(CLOSED)
    for name, value in item.items():
        path = f"{place}.{name}"
        if name in CHANNEL_OPTIONS:
            options[name] = value
            translation.file_options.append(FileOption(path, "option", name))
        elif name in CHANNEL_UNUSED:
            translation.file_options.append(FileOption(path, "unused", CHANNEL_UNUSED[name]))
        elif name in CHANNEL_UNSUPPORTED:
            _not_supported(path, value, CHANNEL_UNSUPPORTED[name], translation)
        elif name != "name":
            known = [*CHANNEL_OPTIONS, *CHANNEL_UNUSED, *CHANNEL_UNSUPPORTED]
            _unknown(path, [f"{place}.{each}" for each in known], translation)
    if options.get("subscribe_proxy_enabled") is True:
        # there, the proxy decides about anonymous clients as about all others
        options["allow_subscribe_for_anonymous"] = True
    return options


_SUBSCRIPTION_TOKEN = "subscription_token_"

# proxies

_PROXY_SWITCHES: Mapping[str, str] = {
    "client.proxy.connect.enabled": "proxy_connect_endpoint",
    "client.proxy.refresh.enabled": "proxy_refresh_endpoint",
    "rpc.without_namespace.proxy_enabled": "proxy_rpc_endpoint",
}
"""Switch in the file → the option that has no value where it is off."""
_PROXY_HEADERS = {
    f"{path}.http_headers": f"proxy_{kind}_http_headers" for kind, path in PROXY_PATHS
}
"""List in the file → option. A proxy gets no other headers, and none without a list."""


def _translate_proxies(content: Mapping[str, Any], translation: Translation) -> None:
    options = translation.options
    for path, endpoint in _PROXY_SWITCHES.items():
        switch = _at(content, path)
        if switch not in (None, True, False):
            translation.problems.append(_wrong_type(path, "true or false"))
        if switch is not True and endpoint not in content:
            options.pop(endpoint, None)
    for path, option in _PROXY_HEADERS.items():
        names = _at(content, path)
        if names is None:
            if option.replace("http_headers", "endpoint") not in options:
                continue
            translation.assumed.add(option)
            names = []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            translation.problems.append(_wrong_type(path, "a list of strings"))
        else:
            options.setdefault(option, names)


def _at(content: Any, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    for key in path.split("."):
        content = content.get(key) if isinstance(content, Mapping) else None
    return content
