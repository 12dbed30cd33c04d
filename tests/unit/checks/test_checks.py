"""System checks: each mistake in the configuration has an id, a message and a hint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from pytest_django import Settings

from tests.server import ROOT
from tests.unit.checks.system_checks import SECURE, found, ids

SENTINELS = {"redis_sentinels": "h:26379", "redis_master_name": "main"}
URL = {"redis_url": "redis://:do-not-show-me@h"}
NAMED = {"channel_layer": "default"}
OURS = {"BACKEND": "realtime.layer.RedisChannelLayer"}
OTHER = {"BACKEND": "channels_redis.core.RedisChannelLayer"}
IN_MEMORY = {"BACKEND": "channels.layers.InMemoryChannelLayer"}

RECOVERABLE = {"history_size": 10, "history_lifetime": 60, "history_recover": True}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"nope": 1}, "realtime.E002", id="unknown"),
        pytest.param({"metrics_addresses": ["::/0"]}, "realtime.W041", id="all addresses"),
        pytest.param({"metrics_key": "short"}, "realtime.W041", id="short key of metrics"),
        pytest.param({"token_rsa_public_key": "no key"}, "realtime.E010", id="key"),
        ({"redis_url": "redis://h?pasword=x"}, "realtime.E014"),
        ({"publish": True, "allow_publish_for_subscriber": True}, "realtime.W001"),
        pytest.param({"history_size": 10}, "realtime.W028", id="history without lifetime"),
        ({"namespaces": [{"name": "ab", "history_lifetime": 10}]}, "realtime.W028"),
        ({"namespaces": [{"name": "ab"}], "channel_namespace_boundary": ""}, "realtime.W030"),
        pytest.param({"redis_streams": True}, "realtime.W001", id="not used"),
        pytest.param({"publish": True}, "realtime.W003", id="publish at the top level"),
        ({"namespaces": [{"name": "chat", "publish": True}]}, "realtime.W003"),
        pytest.param({"client_insecure": True}, "realtime.W004", id="insecure clients"),
        pytest.param({"api_insecure": True}, "realtime.W004", id="insecure API"),
        ({"allowed_origins": ["https://Example.org"]}, "realtime.W006"),
        pytest.param(SENTINELS, "realtime.W009", id="failover without a new epoch"),
        pytest.param({"proxy_subscribe": True}, "realtime.W010", id="nobody to be asked"),
    ],
)
def test_mistake_is_found_by_its_check(options: dict[str, object], expected: str) -> None:
    assert ids(found(**{**SECURE, **options})) == [expected]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="nothing"),
        {**RECOVERABLE, "namespaces": [{"name": "chat", **RECOVERABLE}]},
        pytest.param({"publish": True, "subscribe_to_publish": True}, id="subscribe to publish"),
        pytest.param({"allowed_origins": ["https://*.example.org", "*"]}, id="origins"),
        pytest.param({"allowed_origins": []}, id="no origin"),
        pytest.param({"user_subscribe_to_personal": True}, id="personal channel"),
        pytest.param(URL, id="Redis"),
        pytest.param({"engine": "redis"}, id="Redis by default"),
        pytest.param({**SENTINELS, "redis_epoch_per_run": True}, id="Sentinels"),
        pytest.param({**SENTINELS, "engine": "memory"}, id="Sentinels that are not used"),
    ],
)
def test_right_configuration_gives_no_message(options: dict[str, object]) -> None:
    assert found(**{**SECURE, **options}) == []


def test_protection_may_be_off_in_development() -> None:
    with override_settings(DEBUG=True):
        assert found(client_insecure=True, api_insecure=True) == []


@pytest.mark.parametrize(
    ("layer", "options", "expected"),
    [
        pytest.param(OURS, NAMED, [], id="ours"),
        pytest.param(OURS, {**NAMED, "redis_partitions": 8}, ["realtime.E053"], id="partitions"),
        pytest.param(OURS, {**URL, **NAMED}, [], id="ours and a URL"),
        pytest.param(OTHER, {**URL, **NAMED}, ["realtime.W007"], id="other and a URL"),
        pytest.param(OTHER, NAMED, ["realtime.E018"], id="other, no Redis"),
        pytest.param(IN_MEMORY, {**URL, **NAMED}, ["realtime.E019"], id="in memory"),
        pytest.param(OTHER, {**URL, "channel_layer": "x"}, ["realtime.E019"], id="unknown"),
        pytest.param(OTHER, URL, [], id="of the site, not for us"),
        pytest.param(OTHER, {}, ["realtime.W008"], id="other, memory engine"),
        pytest.param(OTHER, {"engine": "memory"}, ["realtime.W008"], id="other, memory by choice"),
        pytest.param(OURS, {}, ["realtime.W008"], id="ours, memory engine"),
        pytest.param(IN_MEMORY, {}, [], id="in memory, memory engine"),
    ],
)
def test_channel_layer_must_fit_the_engine(
    layer: dict[str, str], options: dict[str, object], expected: list[str]
) -> None:
    with override_settings(CHANNEL_LAYERS={"default": layer}):
        assert ids(found(**SECURE, **options)) == expected


def test_memory_engine_beside_a_redis_layer_is_no_warning_in_development() -> None:
    with override_settings(CHANNEL_LAYERS={"default": OTHER}, DEBUG=True):
        assert found(**SECURE) == []


def test_source_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    with override_settings(REALTIME_CONFIG_FILE=tmp_path / "nothing.json"):
        assert ids(found(**SECURE)) == ["realtime.E001"]


def test_variable_that_names_no_option_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PRECENSE", "true")
    messages = found(**SECURE)
    assert ids(messages) == ["realtime.W002"]
    assert "SERVICE_PRECENSE" in messages[0].msg


@pytest.mark.parametrize(
    ("variable", "option"),
    [
        ("SERVICE_REDIS_WRITE_TIMEOUT", "redis_write_timeout"),
        ("SERVICE_GRPC_API_KEY", "grpc_api_key"),
    ],
)
def test_variable_of_an_option_without_effect_is_found(
    monkeypatch: pytest.MonkeyPatch, variable: str, option: str
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1")
    messages = found(**SECURE)
    assert ids(messages) == ["realtime.W001"]
    assert repr(option) in messages[0].msg


def test_variables_that_are_meant_for_the_server_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVICE_PORT", "tcp://10.0.0.1:80")  # as container platforms set it
    monkeypatch.setenv("SERVICE_ADDRESS", "10.0.0.1")
    assert found(**SECURE) == []


KEY_WITH_SECRET = "-----BEGIN PUBLIC KEY-----\ndo-not-show-me\n-----END PUBLIC KEY-----"


@pytest.mark.parametrize(
    "options",
    [
        {"redis_url": "redis://h?pasword=do-not-show-me"},
        {"token_rsa_public_key": KEY_WITH_SECRET},
        {"proxy_rpc_endpoint": "http://user:do-not-show-me@h:port/"},
    ],
)
def test_secret_in_a_wrong_value_is_not_shown(options: dict[str, str]) -> None:
    (message,) = found(**{**SECURE, **options})
    assert "do-not-show-me" not in str(message)


OTHER_DAPHNE = """
import json, sys
import daphne.server
import django
from django.conf import settings
from django.core.checks import run_checks
settings.configure(INSTALLED_APPS=["realtime"], USE_TZ=True, DATABASES={})
django.setup()
print(json.dumps([message.id for message in run_checks(tags=["realtime"])]))
"""


@pytest.mark.parametrize(
    "content", ["", "class WebSocketProtocol: pass\nclass WebSocketFactory: pass"]
)
def test_daphne_of_another_shape_is_found(tmp_path: Path, content: str) -> None:
    package = tmp_path / "daphne"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "server.py").touch()
    (package / "ws_protocol.py").write_text(content)

    output = subprocess.run(
        [sys.executable, "-c", OTHER_DAPHNE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    assert "realtime.W005" in json.loads(output)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://:do-not-show-me@h", ["realtime.W024"]),
        ("redis://h/0", []),
        ("redis://name@h/0", []),
    ],
)
def test_password_that_error_pages_would_show(
    settings: Settings, url: str, expected: list[str]
) -> None:
    settings.DEFAULT_EXCEPTION_REPORTER_FILTER = "django.views.debug.SafeExceptionReporterFilter"
    assert ids(found(**SECURE, redis_url=url)) == expected


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        ("example.org", "https://example.org"),
        ("https://example.org/", "https://example.org"),
        ("https://example.org/shop", "https://example.org"),
        ("https://example.org:443", "https://example.org"),
        ("http://example.org:80", "http://example.org"),
        ("https://Example.org", "lower case"),
        ("https://example.org:8443", None),
        ("*.example.org", None),
        ("null", None),
    ],
)
def test_pattern_that_matches_no_origin_is_found(pattern: str, instead: str | None) -> None:
    messages = found(**SECURE, allowed_origins=[pattern])
    assert ids(messages) == (["realtime.W006"] if instead else [])
    assert all(instead and instead in str(message.hint) for message in messages)


@pytest.mark.parametrize(
    "others",
    [{}, {"session_authentication": True}, {"proxy_connect_endpoint": "http://127.0.0.1/"}],
    ids=["tokens", "sessions", "endpoint"],
)
def test_pattern_that_cannot_be_read_is_found_and_breaks_nothing(others: dict[str, Any]) -> None:
    messages = found(**SECURE, **others, allowed_origins=["https://[example.org"])
    assert ids(messages) == ["realtime.E011"]


def test_one_mistake_has_one_message() -> None:
    namespaces = [{"name": "chat", "publish": True}, {"nam": "news"}]
    messages = found(namespaces=namespaces, api_insecure=True, client_insecure=True)
    assert {str(message.id)[:10] for message in messages} == {"realtime.E"}


def test_site_that_nobody_can_connect_to_is_found() -> None:
    assert ids(found(api_key="k")) == ["realtime.W029"]
    assert found(client_anonymous=True) == []


def test_runserver_without_websockets_is_found(settings: Settings) -> None:
    settings.DEBUG = True
    assert "realtime.W032" not in ids(found(**SECURE))
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "daphne"]
    assert "realtime.W032" in ids(found(**SECURE))


def test_key_of_an_api_without_a_url_is_found(settings: Settings) -> None:
    settings.ROOT_URLCONF = "realtime.urls"
    assert "realtime.W033" in ids(found(**SECURE))
    assert "realtime.W033" not in ids(found(token_hmac_secret_key="k" * 32))


def test_other_package_in_the_same_place_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "realtime-2.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: realtime\nVersion: 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert ids(found(**SECURE)) == ["realtime.E027"]


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"presense": True}, "Did you mean presence?"),
        ({"API_KEY": "k"}, "Did you mean api_key?"),
        ({"namespaces": [{"name": "ab", "anonymus": True}]}, "Did you mean anonymous?"),
        ({"zzzz": 1}, "lower case"),
    ],
)
def test_unknown_option_has_a_suggestion(options: dict[str, Any], hint: str) -> None:
    [message] = found(**options)
    assert message.id == "realtime.E002"
    assert hint in str(message.hint)


def test_nested_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    client = {"token": {"hmac_secret_key": "k" * 32}, "user_id_http_header": "X-User"}
    file.write_text(json.dumps({"client": client, "log": {"level": "info"}}))
    with override_settings(REALTIME_CONFIG_FILE=file):
        messages = found()
    assert ids(messages) == ["realtime.E043", "realtime.W001"]
    assert "client.user_id_http_header" in messages[0].msg
    assert "log.level" in messages[1].msg
