"""The options that name Redis: their meaning together, and their mistakes.

Pure: makes no connection. Messages show no value that may hold a password; they number URLs
and addresses instead.

Beyond the spec: as Centrifugo 2.8, but where Centrifugo takes one
host with several ports, this service wants as many hosts as ports.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from realtime.config.channel_options import META_TTL_HINT, META_TTL_MIN
from realtime.config.database_options import POSTGRESQL, is_port
from realtime.config.options import Config
from realtime.config.problems import Found, OptionRules

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 6379

PARTITIONS_MAX = 1024

DUMMY = "dummy"
ENGINES = ("", "memory", "redis", POSTGRESQL, DUMMY)

# redis-py compares the scheme as it is written
_SCHEMES = ("redis://", "rediss://", "unix://")
# an IPv6 address has two colons or more; one colon is a port, which belongs in redis_port
_HOST = re.compile(r"[^\s/@:\[\]]+|[0-9a-fA-F.]*(:[0-9a-fA-F.]*){2,}")


def uses_redis(config: Config) -> bool:
    """Return whether the engine is Redis.

    Without the option `engine` it is if the options name a Redis, or a channel layer, which
    only several processes need.
    """
    if config.engine:
        return config.engine == "redis"
    return names_redis(config) or bool(config.channel_layer)


def names_redis(config: Config) -> bool:
    """Return whether the options say where Redis is."""
    return bool(
        config.redis_url
        or config.redis_host
        or config.redis_sentinels
        or config.redis_cluster_addrs
    )


def is_cluster(config: Config) -> bool:
    """Return whether the options name a Redis Cluster, of which this process knows the servers."""
    return bool(config.redis_cluster_addrs)


def hosts(config: Config) -> list[dict[str, object]]:
    """Return the shards, each as an entry of channels_redis' `hosts`; at least one.

    Of a Redis Cluster these are the servers that the options name.

    The config must have no `problems`. URLs take precedence over hosts, and the parts of a URL
    over `redis_password` and `redis_db`.
    """
    if config.redis_cluster_addrs:
        urls = [
            item if "://" in item else f"redis://{item}"
            for item in _items(config.redis_cluster_addrs)
        ]
        return [_url_entry(url, config) for url in urls]
    if config.redis_url:
        return [_url_entry(url, config) for url in _items(config.redis_url)]
    common: dict[str, object] = {"db": config.redis_db}
    if config.redis_password:
        common["password"] = config.redis_password
    if config.redis_tls:
        common |= {"ssl": True, **_tls_options(config)}
    if config.redis_sentinels:
        sentinels = [_address(item) for item in _items(config.redis_sentinels)]
        if config.redis_sentinel_password:
            common["sentinel_kwargs"] = {"password": config.redis_sentinel_password}
        return [
            {"sentinels": sentinels, "master_name": name, **common}
            for name in _items(config.redis_master_name)
        ]
    names = _items(config.redis_host) or [DEFAULT_HOST]
    ports = [int(port) for port in _items(config.redis_port)] or [DEFAULT_PORT]
    if len(ports) == 1:
        ports *= len(names)
    return [{"host": name, "port": port, **common} for name, port in zip(names, ports, strict=True)]


rules: OptionRules[[Config]] = OptionRules()
"""Rules about the options of the engine."""


@rules(
    "E013",
    "Write memory, redis, postgresql or dummy, or leave it empty: redis if the options name one,"
    " else memory.",
)
def _engine_problems(config: Config) -> Found:
    if config.engine not in ENGINES:
        yield f"Unknown engine {config.engine!r}."


@rules("E018", "Set engine to redis, or remove channel_layer.")
def _layer_problems(config: Config) -> Found:
    if config.engine == "memory" and config.channel_layer:
        yield "channel_layer has no effect with the memory engine."


@rules(
    "E014",
    "Write redis://[:password@]host[:port][/db], rediss:// for TLS, or unix:///path; commas"
    " separate shards; in a password , is %2C and # is %23.",
)
def _url_problems(config: Config) -> Found:
    for number, url in enumerate(_items(config.redis_url), 1):
        if mistake := _url_mistake(url):
            yield f"URL {number} of redis_url {mistake}."


def _url_mistake(url: str) -> str | None:
    if not url.startswith(_SCHEMES):
        return "does not begin with redis://, rediss:// or unix://"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # its text shows a part of the URL
        return "is not a URL"
    if parts.fragment or "@" in parts.query:
        return "has a character in its password that must be percent-encoded"
    if parts.scheme == "unix":
        return None if parts.path.strip("/") else "names no socket"
    if not parts.hostname:
        return "names no host"
    if not re.fullmatch(r"(/[0-9]*)?", parts.path):
        return "has a path that is not the number of a database"
    return None


@rules("E015")
def _host_problems(config: Config) -> Found:
    for number, name in enumerate(_items(config.redis_host), 1):
        if not _HOST.fullmatch(name):
            yield (
                f"Host {number} of redis_host is not a name or an address.",
                "The port belongs in redis_port, a URL in redis_url.",
            )
    ports = _items(config.redis_port)
    for number, port in enumerate(ports, 1):
        if not is_port(port):
            yield (
                f"Port {number} of redis_port is not a port.",
                "Ports are numbers from 1 to 65535, separated by commas.",
            )
    count = len(_items(config.redis_host)) or 1
    if len(ports) > 1 and len(ports) != count:
        yield (
            f"redis_port has {len(ports)} ports and redis_host {count} host(s).",
            "Give one port for all hosts, or one for each.",
        )


@rules("E016")
def _sentinel_problems(config: Config) -> Found:
    if config.redis_sentinels and not config.redis_master_name:
        yield (
            "redis_sentinels needs redis_master_name.",
            "Set it to the name under which the Sentinels watch the master.",
        )
    if config.redis_master_name and not config.redis_sentinels:
        yield (
            "redis_master_name needs redis_sentinels.",
            "Set it to the addresses of the Sentinels, or remove redis_master_name.",
        )
    if config.redis_url and config.redis_sentinels:
        # one of them would have no effect, without a warning
        yield (
            "Both redis_url and redis_sentinels name a Redis.",
            "Remove one. With Sentinels, use redis_password and redis_db.",
        )
    for number, item in enumerate(_items(config.redis_sentinels), 1):
        try:
            _address(item)
        except ValueError:
            yield (
                f"Address {number} of redis_sentinels is not host:port.",
                "For example 10.0.0.1:26379,10.0.0.2:26379; IPv6 as [::1]:26379.",
            )
    if not all(_items(config.redis_master_name)):
        yield (
            "A name in redis_master_name is empty.",
            "Each name is a shard; separate several by commas.",
        )


@rules("E017", META_TTL_HINT)
def _meta_ttl_problems(config: Config) -> Found:
    if 0 < config.redis_history_meta_ttl < META_TTL_MIN:
        yield f"redis_history_meta_ttl must be at least {META_TTL_MIN}, or 0."


@rules("E054")
def _cluster_problems(config: Config) -> Found:
    if not config.redis_cluster_addrs:
        return
    elsewhere = ("redis_url", "redis_host", "redis_sentinels")
    if named := [name for name in elsewhere if getattr(config, name)]:
        # one of them would have no effect, without a warning
        yield (
            f"Both redis_cluster_addrs and {named[0]} name a Redis.",
            "Remove one of them.",
        )
    first, *others = items = _items(config.redis_cluster_addrs)
    mistakes = {item: mistake for item in items if (mistake := _cluster_mistake(item))}
    for number, item in enumerate(items, 1):
        if item in mistakes:
            yield (
                f"Address {number} of redis_cluster_addrs {mistakes[item]}.",
                "For example 10.0.0.1:6379,10.0.0.2:6379, or URLs as in redis_url.",
            )
    for number, item in enumerate(others, 2):
        if not mistakes and "://" in item and _common(item, config) != _common(first, config):
            # what it says would have no effect, without a warning
            yield (
                f"Address {number} of redis_cluster_addrs has another user, password, TLS or"
                " options than the first.",
                "The first address says them for all servers: give the others as host:port.",
            )
    if config.redis_db:
        yield (
            "redis_db is set, and a Redis Cluster has no databases but 0.",
            "Remove redis_db.",
        )


def _cluster_mistake(item: str) -> str | None:
    if "://" not in item:
        try:
            _address(item)
        except ValueError:
            return "is not host:port"
        return None
    if item.startswith("unix://"):
        return "is a socket"
    if mistake := _url_mistake(item):
        return mistake
    return "names a database" if urlsplit(item).path not in ("", "/", "/0") else None


def _common(item: str, config: Config) -> tuple[str, str, str]:
    """Return what an address says of all servers: TLS or none, credentials, options."""
    parts = urlsplit(item if "://" in item else f"redis://{item}")
    scheme = "rediss" if config.redis_tls else parts.scheme
    return scheme, parts.netloc.rpartition("@")[0], parts.query


@rules("E053")
def _partition_problems(config: Config) -> Found:
    if not config.redis_partitions and not is_cluster(config):
        return
    if config.redis_partitions > PARTITIONS_MAX:
        yield (
            f"redis_partitions must be at most {PARTITIONS_MAX}.",
            "128 spreads evenly over dozens of servers.",
        )
    if len(_items(config.redis_url or config.redis_master_name or config.redis_host)) > 1:
        yield (
            "redis_partitions has no use with several shards.",
            "Name one address, behind which there is a cluster, or remove redis_partitions.",
        )
    if "{" in config.redis_prefix:
        yield (
            "redis_prefix has a brace, and a cluster would take what follows for the hash tag.",
            "Remove the brace. Keys of the old prefix stay in Redis: see docs/redis.md.",
        )


@rules("E028", "Redis answers nothing else on that connection while it waits.")
def _wait_problems(config: Config) -> Found:
    if config.redis_wait_replicas and config.redis_wait_timeout >= config.redis_read_timeout:
        yield "redis_wait_timeout is not less than redis_read_timeout."


def _items(text: str) -> list[str]:
    """Return the items of a comma list, empty items too: they are mistakes."""
    return [item.strip() for item in text.split(",")] if text else []


def _address(text: str) -> tuple[str, int]:
    """Return host and port of "host:port".

    Raises:
        ValueError: the text has another form.
    """
    name, colon, port = text.rpartition(":")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    elif ":" in name:
        raise ValueError("an IPv6 address needs brackets")
    if not colon or not _HOST.fullmatch(name) or not is_port(port):
        raise ValueError("not host:port")
    return name, int(port)


def _url_entry(url: str, config: Config) -> dict[str, object]:
    if config.redis_tls and url.startswith("redis://"):
        url = url.replace("redis://", "rediss://", 1)
    entry: dict[str, object] = {"address": url}
    if config.redis_db:
        entry["db"] = config.redis_db
    if config.redis_password:
        entry["password"] = config.redis_password
    if url.startswith("rediss://"):  # other connections do not take these options
        entry |= _tls_options(config)
    return entry


def _tls_options(config: Config) -> dict[str, object]:
    if config.redis_tls_skip_verify:
        return {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return {}
