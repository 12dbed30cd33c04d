"""Where options come from, and which place wins."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings

from realtime.config import sources as config_sources
from realtime.config.options import ChannelOptions
from realtime.config.reader import InvalidOptions
from tests.server import ROOT


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"api_key": "file", "name": "file", "admin_secret": "file"}))
    monkeypatch.setenv("SERVICE_CONFIG_FILE", str(path))
    return path


def gathered() -> dict[str, object]:
    sources = config_sources.gather()
    assert sources.problems == []
    return sources.options


def test_places_win_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["api_key", "name", "admin_secret", "admin_password", "token_hmac_secret_key"]
    places = ["environment", "file of the environment", "settings", "file of settings", "defaults"]

    def of(place: str) -> dict[str, str]:
        """Each place sets the options from its own on."""
        return dict.fromkeys(options[places.index(place) :: -1], place)

    monkeypatch.setenv("SERVICE_API_KEY", "environment")
    files = {}
    for place in ("file of the environment", "file of settings"):
        files[place] = tmp_path / f"{place}.json"
        files[place].write_text(json.dumps(of(place)))
    monkeypatch.setenv("SERVICE_CONFIG_FILE", str(files["file of the environment"]))

    with override_settings(
        REALTIME=of("settings"),
        REALTIME_CONFIG_FILE=files["file of settings"],
        REALTIME_DEFAULTS=of("defaults"),
    ):
        config = config_sources.current()

    assert {name: config.value_of(name) for name in options} == dict(
        zip(options, places, strict=True)
    )


def test_source_of_each_option_is_told(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_SECRET", "environment")

    with override_settings(REALTIME={"engine": "memory", "token_hmac_secret_key": "settings"}):
        origins = config_sources.gather().origins

    assert origins == {
        "token_hmac_secret_key": "environment",
        "engine": "settings",
        "name": "file",
        "api_key": "file",
        "admin_secret": "file",
    }


def test_mistakes_name_the_source_of_their_options(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_HISTORY_SIZE", "many")
    monkeypatch.setenv("SERVICE_REDIS_HOST", "a b")
    config_file.write_text('{"nope": 1, "namespaces": [{"name": "a.b"}], "redis_port": "no"}')

    with override_settings(REALTIME={"presence": "yes", "history_recover": True}):
        messages = [problem.message for problem in config_sources.examine().problems]
    with override_settings(REALTIME={"engine": "none"}):
        messages += [problem.message for problem in config_sources.examine().problems]

    for message in (
        "Option 'presence' must be true or false, not str (from settings).",
        "Option 'history_size' must be an integer, not str (from the environment).",
        "Unknown option 'nope' (from the config file).",
        "Namespace name 'a.b' is not allowed (from the config file).",
        "history_recover of the top level needs history_size and history_lifetime"
        " (history_recover from settings, history_size from the environment).",
        "Host 1 of redis_host is not a name or an address (from the environment).",
        "Unknown engine 'none' (from settings).",
    ):
        assert message in messages


def test_namespaces_of_the_stronger_source_replace_all_others(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text('{"namespaces": [{"name": "file"}]}')
    monkeypatch.setenv("SERVICE_NAMESPACES", '[{"name": "chat", "presence": true}]')
    with override_settings(REALTIME={"namespaces": [{"name": "settings"}]}):
        assert config_sources.current().namespaces == {"chat": ChannelOptions(presence=True)}


def test_older_name_in_a_stronger_source_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_SECRET", "environment")
    with override_settings(REALTIME={"token_hmac_secret_key": "settings"}):
        assert config_sources.current().connection_tokens.hmac_secret_key == "environment"


def test_newer_name_wins_within_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_SECRET", "old")
    monkeypatch.setenv("SERVICE_TOKEN_HMAC_SECRET_KEY", "new")
    assert gathered()["token_hmac_secret_key"] == "new"


def test_values_of_the_environment_are_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PRESENCE", "true")
    monkeypatch.setenv("SERVICE_HISTORY_SIZE", "10")
    monkeypatch.setenv("SERVICE_ALLOWED_ORIGINS", "https://a https://b")
    assert gathered() == {
        "presence": True,
        "history_size": 10,
        "allowed_origins": ["https://a", "https://b"],
    }


def test_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "")
    with override_settings(REALTIME={"api_key": "settings"}):
        assert gathered()["api_key"] == "settings"


def test_prefix_of_the_variables_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "service")
    monkeypatch.setenv("CHAT_API_KEY", "chat")
    with override_settings(REALTIME_ENV_PREFIX="CHAT_"):
        assert gathered() == {"api_key": "chat"}


def test_empty_prefix_reads_no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "x")
    with override_settings(REALTIME_ENV_PREFIX=""):
        sources = config_sources.gather()
    assert (sources.options, sources.unknown_variables) == ({}, [])


def test_unknown_variables_with_the_prefix_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PRECENSE", "true")
    monkeypatch.setenv("SERVICE_ADDRESS_OF_SOMEONE_ELSE", "x")
    monkeypatch.setenv("OTHER_THING", "x")
    sources = config_sources.gather()
    assert sources.unknown_variables == ["SERVICE_ADDRESS_OF_SOMEONE_ELSE", "SERVICE_PRECENSE"]
    assert sources.options == {}


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("SERVICE_REDIS_STREAMS", {"redis_streams": "value"}),
        ("SERVICE_PROXY_CONNECT_ENDPOINT", {"proxy_connect_endpoint": "value"}),
        ("SERVICE_PORT", {}),
        ("SERVICE_ADDRESS", {}),
    ],
)
def test_variable_of_an_option_without_effect_is_given_unless_it_is_the_server_s(
    monkeypatch: pytest.MonkeyPatch, variable: str, expected: dict[str, object]
) -> None:
    monkeypatch.setenv(variable, "value")
    sources = config_sources.gather()
    assert (sources.options, sources.unknown_variables) == (expected, [])


def test_file_is_named_with_the_prefix_in_force(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"api_key": "other"}')
    monkeypatch.setenv("CHAT_CONFIG_FILE", str(other))
    with override_settings(REALTIME_ENV_PREFIX="CHAT_"):
        assert gathered() == {"api_key": "other"}


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000],
    ids=["broken", "array", "string", "no UTF-8", "too deep"],
)
def test_file_without_a_json_object_is_a_problem(config_file: Path, content: bytes) -> None:
    config_file.write_bytes(content)
    assert [problem.id for problem in config_sources.gather().problems] == ["E001"]


def test_missing_file_is_a_problem(config_file: Path) -> None:
    config_file.unlink()
    problem = config_sources.gather().problems[0]
    assert problem.id == "E001"
    assert str(config_file) in problem.message


@pytest.mark.parametrize("value", [None, [], "x"])
def test_setting_that_is_no_dict_is_a_problem(value: object) -> None:
    with override_settings(REALTIME=value):
        assert [problem.id for problem in config_sources.gather().problems] == ["E001"]


def test_settings_changed_in_a_test_are_seen_at_once_and_undone() -> None:
    before = config_sources.current()
    with override_settings(REALTIME={"api_key": "one"}):
        assert config_sources.current().api_key == "one"
        with override_settings(REALTIME={"api_key": "two"}):
            assert config_sources.current().api_key == "two"
        assert config_sources.current().api_key == "one"
    assert config_sources.current() == before


def test_configuration_is_read_once() -> None:
    with override_settings(REALTIME={"api_key": "one"}):
        assert config_sources.current() is config_sources.current()


def test_mistakes_are_raised_when_the_configuration_is_used() -> None:
    with override_settings(REALTIME={"nope": 1}), pytest.raises(InvalidOptions, match="'nope'"):
        config_sources.current()


# names in Redis


def prefix() -> str:
    return config_sources.redis_prefix(config_sources.current())


def test_prefix_of_redis_is_the_one_given() -> None:
    with override_settings(REALTIME={"redis_prefix": "shop"}):
        assert prefix() == "shop"


def test_prefix_of_redis_is_the_site_s_by_default() -> None:
    with override_settings(SECRET_KEY="one"):
        first, again = prefix(), prefix()
    with override_settings(SECRET_KEY="two"):
        other = prefix()
    assert re.fullmatch(r"realtime-[0-9a-f]{8}", first)
    assert first == again
    assert first != other


PREFIX = """
import django
from django.conf import settings
settings.configure(SECRET_KEY="one")
django.setup()
from realtime.config import sources
print(sources.redis_prefix(sources.current()))
"""


def test_processes_of_a_site_agree_on_the_prefix_of_redis() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PREFIX],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    with override_settings(SECRET_KEY="one"):
        assert prefix() == output.strip()


# the channel layer

LAYERS = {
    "ours": {"BACKEND": "realtime.layer.RedisChannelLayer"},
    "other": {"BACKEND": "channels_redis.core.RedisChannelLayer"},
    "memory": {"BACKEND": "channels.layers.InMemoryChannelLayer"},
}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"channel_layer": "ours"}, id="ours"),
        pytest.param({"channel_layer": "ours", "redis_url": "redis://h"}, id="ours and a URL"),
        pytest.param({"channel_layer": "other", "redis_url": "redis://h"}, id="other and a URL"),
        pytest.param({"channel_layer": "other", "engine": "redis"}, id="other and the default"),
    ],
)
def test_layer_that_can_deliver_is_taken(options: dict[str, object]) -> None:
    with override_settings(REALTIME=options, CHANNEL_LAYERS=LAYERS):
        assert config_sources.current().channel_layer == options["channel_layer"]


@pytest.mark.parametrize(
    ("options", "check"),
    [
        pytest.param({"channel_layer": "nope"}, "E019", id="unknown"),
        pytest.param({"channel_layer": "memory", "engine": "redis"}, "E019", id="in memory"),
        pytest.param({"channel_layer": "other"}, "E018", id="no Redis named"),
    ],
)
def test_layer_that_cannot_deliver_is_refused(options: dict[str, object], check: str) -> None:
    with (
        override_settings(REALTIME=options, CHANNEL_LAYERS=LAYERS),
        pytest.raises(InvalidOptions) as raised,
    ):
        config_sources.current()
    assert [problem.id for problem in raised.value.problems] == [check]


def test_changed_layers_are_seen_at_once() -> None:
    with override_settings(REALTIME={"channel_layer": "ours"}, CHANNEL_LAYERS=LAYERS):
        assert config_sources.current().channel_layer == "ours"
        with override_settings(CHANNEL_LAYERS={}), pytest.raises(InvalidOptions):
            config_sources.current()


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param({"a": {"BACKEND": "x.Y"}}, {"a": "x.Y"}, id="layer"),
        pytest.param({"a": {}, "b": None}, {"a": "", "b": ""}, id="no backend"),
        pytest.param([], {}, id="no dict"),
    ],
)
def test_layers_are_those_of_the_site(layers: object, expected: dict[str, str]) -> None:
    with override_settings(CHANNEL_LAYERS=layers):
        assert config_sources.channel_layers() == expected
