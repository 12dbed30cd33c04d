"""Config files with nested names: mistakes, and options without effect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.checks.options import check_unused
from realtime.config import sources
from realtime.config.merging import Merged
from realtime.config.names import NOT_USED
from realtime.config.nested import translate
from realtime.config.nested_names import (
    CHANNEL_UNSUPPORTED,
    CHANNEL_UNUSED,
    OFF,
    UNSUPPORTED,
    UNUSED,
)
from realtime.config.options import CHANNEL_OPTION_FIELDS, find_option
from realtime.config.problems import Problem
from realtime.config.reader import read
from tests.unit.config.nested_files import CLIENT, namespace, rules, tree


@pytest.mark.parametrize(
    "content",
    [
        tree("client.user_id_http_header", "X-User"),
        tree("client.proxy.connect.static_http_headers", {"A": "b"}),
        tree("channel.proxy.sub_refresh.endpoint", "http://a"),
        tree("broker.enabled", True),
        tree("engine.redis.user", "someone"),
        tree("engine.redis.sentinel_user", "someone"),
        tree("engine.redis.sentinel_tls.enabled", True),
        tree("http_server.internal_port", 9000),
        tree("http_server.internal_address", "127.0.0.1"),
        {"client": {}, "proxies": [{"name": "a"}]},
        {"client": {}, "rpc": {"namespaces": [{"name": "a"}]}},
        namespace(subscribe_proxy_name="other"),
        namespace(sub_refresh_proxy_enabled=True),
        namespace(subscribe_stream_proxy_enabled=True),
        namespace(subscription_type="map"),
        namespace(sub_refresh_proxy_name="other"),
    ],
    ids=json.dumps,
)
def test_what_is_not_supported_is_a_mistake(content: dict[str, Any]) -> None:
    assert rules(content) == ["E043"]


@pytest.mark.parametrize(
    "content",
    [
        {"broker": {"type": "nats"}},
        tree("engine.redis.sentinel_tls.root_ca_pem", "x"),
        {"client": {}, "proxies": []},
        namespace(subscribe_proxy_name="default"),
        namespace(subscription_type="stream"),
        namespace(map={}),
    ],
    ids=json.dumps,
)
def test_what_is_not_supported_may_be_off(content: dict[str, Any]) -> None:
    assert rules(content) == []


@pytest.mark.parametrize(
    "content",
    [
        tree("http_server.port", 9000),
        tree("http_server.tls.enabled", True),
        tree("log.level", "debug"),
        tree("client.concurrency", 8),
        tree("websocket.compression", True),
        tree("channel.history_meta_ttl", "720h"),
        tree("engine.redis.idle_timeout", "1s"),
        tree("http_stream.handler_prefix", "/x"),
        {"client": {}, "consumers": [{"name": "a"}]},
        namespace(delta_publish=True),
    ],
    ids=json.dumps,
)
def test_what_has_no_effect_is_reported(content: dict[str, Any]) -> None:
    translation = translate(content)
    assert translation.problems == []
    assert "unused" in {each.kind for each in translation.file_options}


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (tree("client.token.hmac_secret", "s"), "client.token.hmac_secret_key"),
        (tree("client.token", 5), ""),
        (tree("chanel.namespaces", []) | {"client": {}}, ""),
        (namespace(allow_publish_for_clients=True), "allow_publish_for_client?"),
        (namespace(publish=True), ""),
    ],
    ids=str,
)
def test_unknown_option_is_a_mistake(content: dict[str, Any], hint: str) -> None:
    [problem] = translate(content).problems
    assert problem.id == "E002"
    assert hint in problem.hint


@pytest.mark.parametrize(
    "content",
    [
        tree("channel.namespaces", {}),
        tree("channel.namespaces", [5]),
        tree("channel.without_namespace", []),
    ],
    ids=str,
)
def test_channels_of_another_shape_are_a_mistake(content: dict[str, Any]) -> None:
    assert rules(content) == ["E003"]


def test_options_of_this_service_may_stand_beside_the_sections() -> None:
    content = {"client": {}, "session_authentication": True}
    assert translate(content).options["session_authentication"] is True


@pytest.mark.parametrize(
    "content",
    [
        {"client": CLIENT, "allowed_origins": ["*"]},
        {"allowed_origins": ["*"], "client": CLIENT},
        {"client": {"token": {"hmac_secret_key": "a"}}, "secret": "b"},
        {"websocket": {"disabled": True}, "websocket_disable": False},
        {
            "client": {"allow_anonymous_connect_without_token": False},
            "allow_anonymous_connect_without_token": True,
        },
    ],
    ids=json.dumps,
)
def test_one_option_under_two_names_is_a_mistake(content: dict[str, Any]) -> None:
    assert rules(content) == ["E001"]


@pytest.mark.parametrize(
    "content",
    [
        tree("client.proxy.connect.enabled", "false"),
        tree("client.proxy.connect.http_headers", "Cookie"),
        tree("rpc.proxy.http_headers", ["Cookie", {}]),
    ],
    ids=json.dumps,
)
def test_proxy_of_another_shape_is_a_mistake(content: dict[str, Any]) -> None:
    assert rules(content) == ["E003"]


@pytest.mark.parametrize("address", [None, 5, {"a": 1}, ["a", 5]], ids=str)
def test_address_of_another_shape_is_a_mistake(address: object) -> None:
    _, problems = read(translate(tree("engine.redis.address", address)).options)
    assert [problem.id for problem in problems] == ["E003"]


def test_own_name_of_an_endpoint_needs_no_switch() -> None:
    content = {"client": {}, "proxy_connect_endpoint": "http://a"}
    assert translate(content).options["proxy_connect_endpoint"] == "http://a"


def test_secrets_are_in_no_report() -> None:
    secret = "do-not-show-me"
    token = {"hmac_secret_key": [secret], "unknown": secret, "hmac_secret": secret}
    content = {"client": {"token": token}}
    translation = translate(content)
    assert [each.id for each in translation.problems] == ["E002", "E002"]
    assert secret not in str(translation.problems)
    assert secret not in str(translation.file_options)


# options of later versions under flat names: the same sentences as in files with nested names


def told(options: dict[str, Any]) -> tuple[list[Problem], list[str]]:
    """The mistakes in options, and what the check says of those without effect."""
    config, problems = read(options)
    merged = Merged()
    merged.add("settings", options)
    gathered = sources.Sources(merged.options, [], [], {}, [])
    return problems, [each.msg for each in check_unused(sources.Report(gathered, config, problems))]


def flat(path: str) -> str:
    return path.removeprefix("engine.").replace(".", "_")


# sections of nested files whose flat name is an option here, or was one without effect before
PATHS = [
    path
    for path in (*UNUSED, *UNSUPPORTED)
    if find_option(flat(path)) is None and flat(path) not in NOT_USED
]


@pytest.mark.parametrize("path", PATHS)
def test_flat_name_is_told_as_its_path(path: str) -> None:
    [nested] = translate(tree(path, True)).file_options
    problems, unused = told({flat(path): True})

    if nested.kind == "unsupported":
        assert [(each.id, each.message) for each in problems] == [
            ("E043", f"Option {flat(path)!r} is not supported: {nested.meaning}.")
        ]
        assert unused == []
        assert [told({flat(path): off}) for off in (*OFF, "false")] == [([], [])] * (len(OFF) + 1)
    else:
        assert nested.kind == "unused"
        assert problems == []
        assert unused == [f"Option {flat(path)!r} has no effect: {nested.meaning}."]


@pytest.mark.parametrize("inside", [False, True], ids=["top level", "namespace"])
@pytest.mark.parametrize(
    "name", sorted({*CHANNEL_UNUSED, *CHANNEL_UNSUPPORTED} - CHANNEL_OPTION_FIELDS.keys())
)
def test_channel_option_is_told_as_in_a_nested_file(name: str, inside: bool) -> None:
    options = {"namespaces": [{"name": "chat", name: "x"}]} if inside else {name: "x"}
    problems, unused = told(options)
    place = " in namespace 'chat'" if inside else ""

    if name in CHANNEL_UNSUPPORTED:
        [problem] = problems
        assert problem.id == "E043"
        assert problem.message == (
            f"Option {name!r}{place} is not supported: {CHANNEL_UNSUPPORTED[name]}."
        )
        assert unused == []
    else:
        where = f"{name} of namespace chat" if inside else name
        assert problems == []
        assert unused == [f"Option {where!r} has no effect: {CHANNEL_UNUSED[name]}."]


@pytest.mark.parametrize("name", ["uni_grpc_port", "swagger_handler_prefix", "consumers_x"])
def test_options_of_what_is_not_offered_are_told(name: str) -> None:
    problems, unused = told({name: 1})
    assert problems == []
    assert unused == [f"Option {name!r} has no effect: this service does not offer it."]


@pytest.mark.parametrize("name", ["websocket_handler_prefx", "client_prox", "log_leve", "rpcs"])
def test_misspelt_name_is_still_unknown(name: str) -> None:
    assert [each.id for each in told({name: 1})[0]] == ["E002"]


def test_environment_is_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_DELTA_PUBLISH", "true")
    monkeypatch.setenv("SERVICE_CLIENT_USER_ID_HTTP_HEADER", "X-User")
    report = sources.examine()
    assert [each.id for each in report.problems] == ["E043"]
    assert report.sources.unknown_variables == []
    assert "delta_publish" in check_unused(report)[0].msg
