"""The configuration in force, from the environment, Django's settings and a config file.

    environment SERVICE_<OPTION>  >  file that SERVICE_CONFIG_FILE names
        >  settings.REALTIME  >  file that settings.REALTIME_CONFIG_FILE names
        >  settings.REALTIME_DEFAULTS

- The prefix of the environment variables is `settings.REALTIME_ENV_PREFIX`.
- A file is a JSON object of options, like the `config.json` of the reference server; or of sections
  with options, like those of its later versions.
- Who starts a process knows more than who wrote the settings, so the environment and what it names
  come first. REALTIME_DEFAULTS is for settings that others install, as those of the ready site.

The sources are read at the first use and again when settings change, as in tests.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.crypto import salted_hmac

from realtime.config import nested, parts
from realtime.config.channel_types import ChannelTypes
from realtime.config.database_options import uses_postgresql
from realtime.config.merging import PLACES, Merged, Origin
from realtime.config.names import SERVER_DECIDES, option_of
from realtime.config.nested import FileOption
from realtime.config.nested_names import FLAT_UNSUPPORTED, why_unused
from realtime.config.options import Config, find_option
from realtime.config.problems import Problem
from realtime.config.reader import InvalidOptions, from_strings, read
from realtime.config.redis_options import DUMMY, hosts, names_redis, uses_redis

DEFAULT_ENV_PREFIX = "SERVICE_"
_SETTINGS = (
    "REALTIME",
    "REALTIME_DEFAULTS",
    "REALTIME_ENV_PREFIX",
    "REALTIME_CONFIG_FILE",
    "CHANNEL_LAYERS",
)

OUR_LAYER = "realtime.layer.RedisChannelLayer"
IN_MEMORY_LAYER = "channels.layers.InMemoryChannelLayer"

_OPTION = re.compile(r"'(\w+)'|\b([a-z0-9]+(?:_[a-z0-9]+)+)\b|^Unknown (\w+) (?=')|^(\w+)\b")
"""A word of a message that may be the name of an option."""


class Sources(NamedTuple):
    """The options of all sources, merged, and the problems of the sources themselves."""

    options: dict[str, object]
    problems: list[Problem]
    unknown_variables: list[str]
    """Environment variables with the prefix that are not options."""
    origins: dict[str, Origin]
    """Option → the source of its value."""
    file_options: list[FileOption]
    """The options of config files with nested names, and what they are here."""
    without_effect: Mapping[str, str] = {}
    """Option that is given and does not count → the option that counts, in words."""


class Report(NamedTuple):
    """The configuration as it is now, with its mistakes."""

    sources: Sources
    config: Config
    """Without the options that are wrong."""
    problems: list[Problem]
    """Every mistake in the sources, the options and the channel layer."""


class Configuration:
    """The options of one process: read at their first use, and again when settings changed."""

    def __init__(self) -> None:
        self._loaded: dict[str, Config] = {}
        """At "config" the configuration in force, once it was read."""
        self._overrides: Mapping[str, object] = {}
        self._types: ChannelTypes | None = None

    def current(self) -> Config:
        """Return the configuration in force.

        Raises:
            InvalidOptions: the options have mistakes; the system checks list them too.
        """
        loaded = self._loaded
        config = loaded.get("config")
        if config is None:
            report = self.examine()
            if report.problems:
                raise InvalidOptions(report.problems)
            # threads that read at the same time share the first one's: `serving` compares identity
            config = loaded.setdefault("config", report.config)
        return config

    def gather(self) -> Sources:
        """Read and merge the sources; validate only the sources themselves."""
        return _gather(self._overrides)

    def examine(self) -> Report:
        """Read, merge and validate the sources."""
        sources = self.gather()
        config, problems = read(sources.options)
        namespaces = {**parts.namespaces, **config.namespaces}
        config = replace(config, types=self._types, namespaces=namespaces)
        problems = [
            *(problems or _url_problems(config)),
            *layer_problems(config),
            *_database_problems(config),
        ]
        named = [_name_sources(problem, sources.origins) for problem in problems]
        return Report(sources, config, [*sources.problems, *named])

    def declare(self, types: ChannelTypes | None) -> None:
        """Have the configuration know the declared types of channels, from its next use on."""
        if types is not self._types:
            self._types = types
            self._loaded = {}

    def override(self, **options: object) -> None:
        """Override options in tests. Replaces earlier overrides."""
        self._overrides = options
        self._loaded = {}

    def forget(self, *, setting: str, **_: object) -> None:
        """Read the configuration again at its next use, if this setting is part of it."""
        if setting in _SETTINGS:
            self._loaded = {}


def _gather(overrides: Mapping[str, object]) -> Sources:
    prefix: str = getattr(settings, "REALTIME_ENV_PREFIX", DEFAULT_ENV_PREFIX)
    problems: list[Problem] = []
    file_options: list[FileOption] = []
    strings, unknown = _read_environment(prefix)
    merged = Merged()
    merged.add("defaults", _read_setting("REALTIME_DEFAULTS", problems))
    file_of_settings = getattr(settings, "REALTIME_CONFIG_FILE", None)
    merged.add("file", *_read_file(file_of_settings, problems, file_options))
    merged.add("settings", _read_setting("REALTIME", problems))
    file_of_environment = os.environ.get(f"{prefix}CONFIG_FILE")
    merged.add("file", *_read_file(file_of_environment, problems, file_options))
    merged.add("environment", from_strings(strings))
    merged.add("override", overrides)
    return Sources(
        merged.options, problems, unknown, merged.origins, file_options, merged.without_effect
    )


def _name_sources(problem: Problem, origins: Mapping[str, Origin]) -> Problem:
    """Return a problem whose message says where its options come from."""
    found = (next(filter(None, groups)) for groups in _OPTION.findall(problem.message))
    names = [option_of(name) for name in dict.fromkeys(found)]
    if "namespace" in problem.message.lower():
        names.append("namespaces")
    given = {name: PLACES[origins[name]] for name in names if origins.get(name) in PLACES}
    places = set(given.values())
    if not places:
        return problem
    if len(places) == 1:
        text = f"from {places.pop()}"
    else:
        text = ", ".join(f"{name} from {place}" for name, place in given.items())
    return problem._replace(message=f"{problem.message.removesuffix('.')} ({text}).")


def redis_prefix(config: Config) -> str:
    """Return the prefix of all names in Redis: the option, or one made from SECRET_KEY.

    All processes of a site have the same one, and two sites in one Redis different ones.
    """
    if config.redis_prefix:
        return config.redis_prefix
    digest = salted_hmac("realtime.conf.redis_prefix", "", algorithm="sha256").hexdigest()
    return f"realtime-{digest[:8]}"


def observer_keys() -> list[bytes]:
    """Return the keys of observer tokens: the first one signs, any of them verifies.

    They are made from SECRET_KEY and SECRET_KEY_FALLBACKS, and used for nothing else.
    """
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [
        salted_hmac("realtime.conf.observer_keys", "", secret, algorithm="sha256").digest()
        for secret in secrets
    ]


def channel_layers() -> dict[str, str]:
    """Return the site's channel layers: alias → dotted path of the backend, or ""."""
    layers = getattr(settings, "CHANNEL_LAYERS", {})
    if not isinstance(layers, Mapping):
        return {}
    return {
        alias: str(layer.get("BACKEND", "")) if isinstance(layer, Mapping) else ""
        for alias, layer in layers.items()
    }


_OF_THE_ENGINE = {"redis_cluster_addrs": "E054", "redis_partitions": "E053"}
"""Options that say where Redis is, and that a layer of CHANNEL_LAYERS cannot have."""


def layer_problems(config: Config) -> Iterator[Problem]:
    """Yield why the layer that `channel_layer` names cannot deliver.

    Nothing with the memory engine, with which any layer is a mistake in the options, and with the
    dummy engine, which tests use in place of the engine of the site.
    """
    alias = config.channel_layer
    if not alias or config.engine in ("memory", DUMMY):
        return
    backend = channel_layers().get(alias)
    if backend is None:
        yield Problem(
            "E019",
            f"channel_layer {alias!r} is not in CHANNEL_LAYERS.",
            "Add it there, or leave channel_layer empty to use a layer of the service.",
        )
    elif backend == IN_MEMORY_LAYER:
        yield Problem(
            "E019",
            f"The channel layer {alias!r} is the in-memory one, which does not reach other"
            " processes.",
            f"Use {OUR_LAYER}, or leave channel_layer empty.",
        )
    elif backend == OUR_LAYER:
        without_effect = [name for name in _OF_THE_ENGINE if getattr(config, name)]
        for name in without_effect[:1]:
            yield Problem(
                _OF_THE_ENGINE[name],
                f"{name} has no effect with the channel layer {alias!r}, which itself says where"
                " Redis is.",
                "Leave channel_layer empty; or remove the option, and set partitions in the CONFIG"
                " of the layer.",
            )
    elif not config.engine and not names_redis(config):
        # the engine can take the address of Redis from our layer only
        yield Problem(
            "E018",
            f"channel_layer is {alias!r}, but no option names a Redis for the engine.",
            f"Set redis_url, or use {OUR_LAYER}.",
        )


def _url_problems(config: Config) -> Iterator[Problem]:
    """Yield the Redis URLs of which redis-py can make no connection."""
    if not (config.redis_url or config.redis_cluster_addrs) or not uses_redis(config):
        return
    # imports redis-py, which not every site needs
    from realtime.redis.hosts import Host

    is_cluster = bool(config.redis_cluster_addrs)
    name, check = ("redis_cluster_addrs", "E054") if is_cluster else ("redis_url", "E014")
    for number, entry in enumerate(hosts(config), 1):
        try:
            Host(entry)
        except ValueError as error:  # its text holds no password
            yield Problem(
                check,
                f"URL {number} of {name}: {error}.",
                "Parameters of a URL are options of connections, such as ssl_ca_certs.",
            )


def _database_problems(config: Config) -> Iterator[Problem]:
    """Yield why the PostgreSQL engine cannot be made here."""
    if not uses_postgresql(config):
        return
    if find_spec("psycopg") is None:
        yield Problem(
            "E062",
            "The engine is postgresql, and the package psycopg is not installed.",
            'pip install "psycopg[binary]"',
        )
    if config.database and config.database not in settings.DATABASES:
        yield Problem(
            "E062",
            f"database {config.database!r} is not in DATABASES.",
            "Add it there, or leave it empty for the default one.",
        )


def variable(name: str) -> str:
    """Return a variable of the environment; "" if it is not set."""
    return os.environ.get(name, "")


def _read_environment(prefix: str) -> tuple[dict[str, str], list[str]]:
    strings: dict[str, str] = {}
    unknown: list[str] = []
    for variable, value in os.environ.items():
        if not prefix or not variable.startswith(prefix):
            continue
        name = variable.removeprefix(prefix).lower()
        if name == "config_file":
            continue
        reason = why_unused(name) or FLAT_UNSUPPORTED.get(name, "")
        if name == "namespaces" or find_option(name) or reason not in ("", SERVER_DECIDES):
            strings[name] = value
        elif not reason:
            # not those of the ASGI server, such as SERVICE_PORT of container platforms
            unknown.append(variable)
    return strings, sorted(unknown)


def _read_setting(name: str, problems: list[Problem]) -> Mapping[str, Any]:
    options = getattr(settings, name, {})
    if isinstance(options, Mapping):
        return options
    problems.append(
        Problem("E001", f"The setting {name} must be a dict.", "Map option names to values.")
    )
    return {}


def _read_file(
    path: str | os.PathLike[str] | None, problems: list[Problem], file_options: list[FileOption]
) -> tuple[Mapping[str, Any], Container[str]]:
    """Return the options of a config file, and those of them that it does not name."""
    if not path:
        return {}, ()
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        problems.append(
            Problem(
                "E001", f"The config file {path} cannot be read: {error}.", "Write JSON: {...}."
            )
        )
        return {}, ()
    if not nested.is_nested(content):
        return content, ()
    translation = nested.translate(content)
    problems.extend(translation.problems)
    file_options.extend(translation.file_options)
    return translation.options, translation.assumed


configuration = Configuration()
"""The configuration of this process."""

current = configuration.current
examine = configuration.examine
gather = configuration.gather
forget = configuration.forget


def connect_signals() -> None:
    """Follow the settings that tests change."""
    setting_changed.connect(forget)
