"""Config files with nested names: what each option is here, and what is a mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from realtime.channel_rules import check_subscribe
from realtime.config import sources as config_sources
from realtime.config.fields import kind_of
from realtime.config.nested import is_nested, translate
from realtime.config.nested_names import CHANNEL_OPTIONS, OPTIONS
from realtime.config.options import CONFIG_FIELDS, find_option
from realtime.config.reader import load
from realtime.errors import PermissionDenied
from tests.unit.config.nested_files import CLIENT, namespace, tree


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, False),
        ({"engine": "redis", "namespaces": [], "admin": True}, False),
        ({"presence": True, "proxy_connect_endpoint": "http://a"}, False),
        ({"engine": {"type": "redis"}}, True),
        ({"client": {}}, True),
        ({"channel": {"namespaces": []}, "log": "x"}, True),
    ],
    ids=str,
)
def test_file_with_sections_has_nested_names(content: dict[str, Any], expected: bool) -> None:
    assert is_nested(content) is expected


@pytest.mark.parametrize(("path", "option"), OPTIONS.items())
def test_path_stands_for_an_option(path: str, option: str) -> None:
    assert find_option(option) is not None
    if path.endswith((".connect.endpoint", ".refresh.endpoint", "rpc.proxy.endpoint")):
        return  # only with their switch
    if path.startswith("client.subscription_token."):
        return  # only with their switch
    field = CONFIG_FIELDS[option]
    value: object = {"bool": True, "int": 7, "float": 7.5, "list": ["a"]}.get(
        kind_of(field), "redis://x"
    )

    translation = translate(tree(path, value))

    assert translation.options[option] == value
    assert translation.problems == []
    assert [(each.name, each.kind, each.meaning) for each in translation.file_options] == [
        (path, "option", option)
    ]


def test_file_becomes_a_configuration() -> None:
    content = {
        "client": {
            **CLIENT,
            "token": {"hmac_secret_key": "s", "audience": "us"},
            "ping_interval": "30s",
            "proxy": {"connect": {"enabled": True, "endpoint": "http://a/", "timeout": "2s"}},
        },
        "http_api": {"key": "k"},
        "channel": {
            "without_namespace": {"presence": True},
            "namespaces": [
                {"name": "chat", "history_size": 5, "history_ttl": "300s", "force_recovery": True}
            ],
        },
    }

    config = load(translate(content).options)

    assert (config.connection_tokens.hmac_secret_key, config.connection_tokens.audience) == (
        "s",
        "us",
    )
    assert (config.ping_interval, config.api_key) == (30, "k")
    assert (config.proxies["connect"].endpoint, config.proxies["connect"].timeout) == (
        "http://a/",
        2,
    )
    assert config.channel.presence
    assert config.namespaces["chat"].history_lifetime == 300
    assert config.namespaces["chat"].history_recover


# what is not named is off


@pytest.mark.parametrize("place", ["", "chat"])
def test_channels_are_closed_unless_the_file_opens_them(place: str) -> None:
    rights = {"presence": True, "history_size": 5, "history_ttl": "60s", "join_leave": True}
    content = {"channel": {"without_namespace": rights, "namespaces": [{"name": "chat", **rights}]}}
    options = load(translate(content).options).options_of_namespace(place)
    assert options is not None
    on = {name for name in CHANNEL_OPTIONS if getattr(options, name, None) is True}
    assert on == {"presence", "join_leave"}
    assert options.presence_disable_for_client
    assert options.history_disable_for_client


def test_top_level_that_is_not_there_is_closed() -> None:
    assert not load(translate({"client": {}}).options).channel.allow_subscribe_for_client


@pytest.mark.parametrize("name", sorted(CHANNEL_OPTIONS - {"force_recovery_mode"}))
def test_channel_option_has_its_own_name(name: str) -> None:
    value = {"history_size": 5, "history_ttl": 60, "channel_regex": "^a$"}.get(name, True)
    value = "json" if name == "publication_data_format" else value
    translation = translate(namespace(**{name: value}))
    assert translation.problems == []
    [found] = translation.options["namespaces"]  # type: ignore[misc]
    assert found[name] == value  # type: ignore[has-type]


def test_proxy_decides_about_anonymous_clients_too() -> None:
    config = load(translate(namespace(subscribe_proxy_enabled=True)).options)
    assert config.namespaces["chat"].proxy_subscribe
    assert config.namespaces["chat"].allow_subscribe_for_anonymous


@pytest.mark.parametrize("name", ["chat:x#", "chat:x#,", "chat:x#17,", "chat:x##", "chat:#"])
def test_name_that_lists_no_user_opens_nothing_where_a_proxy_decides(name: str) -> None:
    # the proxy is not asked about names that list users
    content = namespace(subscribe_proxy_enabled=True, allow_user_limited_channels=True)
    config = load(translate(content).options)
    with pytest.raises(PermissionDenied):
        check_subscribe(name, config.namespaces["chat"], "", config)


def test_without_origins_no_page_may_connect() -> None:
    assert translate({"client": {}}).options["allowed_origins"] == []
    assert translate({"client": CLIENT}).options["allowed_origins"] == ["https://example.org"]


@pytest.mark.parametrize("switch", [{}, {"enabled": False}, {"enabled": True}], ids=str)
def test_switch_decides_about_keys_of_subscription_tokens(switch: dict[str, bool]) -> None:
    content = {"client": {"subscription_token": {"hmac_secret_key": "s", **switch}}}
    translation = translate(content)
    assert translation.problems == []
    options = load(translation.options).subscription_tokens
    on = switch.get("enabled", False)
    assert (options.prefix, options.hmac_secret_key) == (
        ("subscription_token", "s") if on else ("token", "")
    )


# proxies


@pytest.mark.parametrize("enabled", [{}, {"enabled": False}])
@pytest.mark.parametrize("kind", ["connect", "refresh"])
def test_endpoint_that_is_not_in_use_is_left_out(kind: str, enabled: dict[str, bool]) -> None:
    content = {"client": {"proxy": {kind: {"endpoint": "http://a", **enabled}}}}
    assert f"proxy_{kind}_endpoint" not in translate(content).options


def test_methods_go_to_their_endpoint() -> None:
    content = {
        "rpc": {"proxy": {"endpoint": "http://a"}, "without_namespace": {"proxy_enabled": True}}
    }
    translation = translate(content)
    assert translation.options["proxy_rpc_endpoint"] == "http://a"
    assert translation.problems == []


def test_each_proxy_has_its_own_headers_and_no_others() -> None:
    endpoint = {"endpoint": "http://a"}
    content = {
        "client": {
            "proxy": {"connect": {"enabled": True, "http_headers": ["Cookie", "X-B"], **endpoint}}
        },
        "channel": {"proxy": {"publish": {"http_headers": ["X-A"]}, "subscribe": endpoint}},
    }

    config = load(translate(content).options)

    assert config.proxies["connect"].http_headers == ("Cookie", "X-B")
    assert config.proxies["publish"].http_headers == ("X-A",)
    assert config.proxies["subscribe"].http_headers == ()
    assert config.proxies["rpc"].http_headers is None
    assert config.proxy_extra_http_headers is None
    assert config.handshake_headers == ("Cookie", "X-B", "X-A")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("redis://:p@a:6379/1", "redis://:p@a:6379/1"),
        ("a:6379", "redis://a:6379"),
        ("a:6379,b:6379", "redis://a:6379,redis://b:6379"),
        (["rediss://a", "b:1"], "rediss://a,redis://b:1"),
        ("", ""),
    ],
    ids=str,
)
def test_addresses_are_urls(address: object, url: str) -> None:
    assert translate(tree("engine.redis.address", address)).options["redis_url"] == url


def test_file_is_read_from_settings_and_settings_win(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"http_api": {"key": "file"}, "node": {"name": "file"}}))
    with override_settings(REALTIME_CONFIG_FILE=file, REALTIME={"name": "settings"}):
        report = config_sources.examine()
    assert (report.config.api_key, report.config.name) == ("file", "settings")
    assert report.sources.origins["api_key"] == "file"
    assert [each.name for each in report.sources.file_options] == ["http_api.key", "node.name"]
