"""Options under older and newer names in several sources: which of them counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import override_settings

from realtime.config import sources as config_sources
from realtime.config.options import ChannelOptions


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.json"
    monkeypatch.setenv("SERVICE_CONFIG_FILE", str(path))
    return path


OLDER_AND_NEWER = [
    ({"server_side": True}, {"allow_subscribe_for_client": True}, "allow_subscribe_for_client"),
    (
        {"server_side": False},
        {"allow_subscribe_for_client": False, "allow_user_limited_channels": False},
        "allow_user_limited_channels",
    ),
    (
        {"anonymous": False},
        {"allow_subscribe_for_anonymous": True},
        "allow_subscribe_for_anonymous",
    ),
    ({"publish": False}, {"allow_publish_for_client": True}, "allow_publish_for_client"),
    ({"publish": False}, {"allow_publish_for_subscriber": True}, "allow_publish_for_subscriber"),
    (
        {"subscribe_to_publish": True},
        {"allow_publish_for_client": True},
        "allow_publish_for_client",
    ),
    (
        {"presence": True, "presence_disable_for_client": True},
        {"allow_presence_for_client": True, "allow_presence_for_subscriber": True},
        "allow_presence_for_subscriber",
    ),
    (
        {"history_size": 1, "history_lifetime": 1, "history_disable_for_client": True},
        {"allow_history_for_client": True, "allow_history_for_subscriber": True},
        "allow_history_for_client",
    ),
    (
        {"history_size": 1, "history_lifetime": 1, "history_recover": False},
        {"force_recovery": True},
        "force_recovery",
    ),
]


@pytest.mark.parametrize(("older", "newer", "option"), OLDER_AND_NEWER)
def test_stronger_source_wins_by_the_older_option_too(
    config_file: Path, older: dict[str, object], newer: dict[str, object], option: str
) -> None:
    config_file.write_text(json.dumps(older))
    with override_settings(REALTIME=newer):
        sources = config_sources.gather()
        channel = config_sources.current().channel
    assert channel == ChannelOptions(**older)  # type: ignore[arg-type]
    assert sources.without_effect[option].endswith(" from the config file")


@pytest.mark.parametrize(("older", "newer", "option"), OLDER_AND_NEWER)
def test_stronger_source_wins_by_the_newer_option(
    config_file: Path, older: dict[str, object], newer: dict[str, object], option: str
) -> None:
    config_file.write_text(json.dumps(newer))
    with override_settings(REALTIME=older):
        assert config_sources.current().channel == ChannelOptions(**older, **newer)  # type: ignore[arg-type]


def test_older_option_wins_over_what_a_nested_file_leaves_out(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SERVICE_CONFIG_FILE")
    config_file.write_text('{"channel": {"without_namespace": {"allow_history_for_client": true}}}')

    with override_settings(
        REALTIME_CONFIG_FILE=config_file,
        REALTIME={"publish": True, "history_disable_for_client": True},
    ):
        sources = config_sources.gather()

    assert sources.without_effect == {
        "allow_history_for_client": "history_disable_for_client from settings"
    }
    assert "allow_publish_for_client" not in sources.options


def test_option_that_has_no_effect_beside_a_newer_one_is_told() -> None:
    both = {"publish": True, "allow_publish_for_subscriber": True}
    names = {"history_lifetime": 5, "history_ttl": 6, "secret": "a", "token_hmac_secret_key": "b"}

    with override_settings(REALTIME={**both, **names, "namespaces": [{"name": "chat", **both}]}):
        assert config_sources.gather().without_effect == {
            "publish": "allow_publish_for_subscriber",
            "history_lifetime": "history_ttl",
            "secret": "token_hmac_secret_key",
            "publish of namespace chat": "allow_publish_for_subscriber",
        }


def test_source_that_gives_an_option_again_counts(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text('{"publish": false}')
    monkeypatch.setenv("SERVICE_ALLOW_PUBLISH_FOR_CLIENT", "true")
    with override_settings(REALTIME={"allow_publish_for_client": True}):
        assert config_sources.current().channel.allow_publish_for_client
        assert config_sources.gather().without_effect == {}
