"""Names of options: the older and the newer names of one option, and names without effect here.

Each major version of the reference server renamed options. All of these names are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

OLDER_NAMES: Mapping[str, str] = {
    "secret": "token_hmac_secret_key",
    "admin_trusted_proxies": "trusted_proxies",
}
"""Older name → option. The older name counts where the option's own name is not given."""

NEWER_NAMES: Mapping[str, str] = {
    "history_ttl": "history_lifetime",
    "subscribe_proxy_enabled": "proxy_subscribe",
    "publish_proxy_enabled": "proxy_publish",
    "allow_anonymous_connect_without_token": "client_anonymous",
}
"""Newer name → option. The newer name counts where both are given."""


def option_of(name: str) -> str:
    """Return the name that an option has here, for any of its names; others as they are."""
    return NEWER_NAMES.get(name) or OLDER_NAMES.get(name, name)


def options_in(source: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    """Yield each option of a source once, with the newest of its names that the source has.

    Yields:
        The option's name, its name in the source, and its value.
    """
    for name, value in source.items():
        if not counting_name(name, source):
            yield option_of(name), name, value


def given_namespaces(value: object) -> object:
    """Return the option `namespaces` as it was given; from the environment it is JSON text.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def given_items(options: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the namespaces of a source that can be read; see `given_namespaces`."""
    try:
        items = given_namespaces(options.get("namespaces"))
    except ValueError:
        return []
    items = items if isinstance(items, list | tuple) else []
    return [item for item in items if isinstance(item, Mapping)]


def counting_name(name: str, source: Mapping[str, object]) -> str:
    """Return the newer name of an option that counts in a source in place of `name`; "" if none."""
    known = option_of(name)
    newer = [other for other, option in NEWER_NAMES.items() if option == known]
    if name not in newer and (given := [other for other in newer if other in source]):
        return given[0]
    return known if name in OLDER_NAMES and known in source else ""


SERVER_DECIDES = "the ASGI server decides"


def by_name(reasons: Mapping[str, str]) -> dict[str, str]:
    """Return names → reason, from a table of reasons → names."""
    return {name: reason for reason, names in reasons.items() for name in names.split()}


NOT_USED = by_name(
    {
        "Django's URLconf decides paths": (
            "api_handler_prefix admin_handler_prefix admin_web_path"
        ),
        SERVER_DECIDES: (
            "address port internal_address internal_port tls tls_cert tls_key tls_external"
            " tls_autocert tls_autocert_host_whitelist tls_autocert_cache_dir tls_autocert_email"
            " tls_autocert_server_name tls_autocert_force_rsa tls_autocert_http"
            " tls_autocert_http_addr websocket_ping_interval websocket_write_timeout"
            " websocket_compression websocket_compression_level websocket_compression_min_size"
            " websocket_read_buffer_size websocket_write_buffer_size"
            " websocket_use_write_buffer_pool pid_file gomaxprocs shutdown_timeout"
            " shutdown_termination_delay"
        ),
        "Django's LOGGING decides": "log_level log_file",
        "commands of one connection always run in order": "client_concurrency",
        "it had no effect in the reference server either": (
            "client_ping_interval client_message_write_timeout client_request_max_size"
            " redis_sequence_ttl"
        ),
        "this service does not offer it": (
            "grpc_api grpc_api_port grpc_api_key grpc_api_tls grpc_api_tls_disable"
            " grpc_api_tls_cert grpc_api_tls_key graphite graphite_tags graphite_host"
            " graphite_port graphite_prefix graphite_interval broker nats_url nats_prefix"
            " nats_dial_timeout nats_write_timeout debug"
            " node_info_metrics_aggregate_interval admin_external"
        ),
        "metrics_key or metrics_addresses turns metrics on, at metrics_handler_prefix": (
            "prometheus prometheus_handler_prefix"
        ),
        "streams are always used": "redis_streams",
        "redis_read_timeout bounds writing too": "redis_write_timeout",
        "connections to Redis are few and long-lived": (
            "redis_idle_timeout redis_pubsub_num_workers"
        ),
    }
)
"""Options of the reference server that have no effect → why. They are not mistakes."""
