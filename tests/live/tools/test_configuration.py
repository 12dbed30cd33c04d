"""checkconfig and genconfig, and what other commands say when the options are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from pytest_django import Settings

from realtime.config.reader import load
from tests.live.tools.command import call, call_json, run


def ids(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Id and level of each message."""
    return sorted((message["id"], message["level"]) for message in value["messages"])


# checkconfig


def test_right_configuration_is_said(settings: Settings) -> None:
    settings.REALTIME = {"client_anonymous": True}
    assert call("checkconfig") == "The configuration is valid."
    assert call_json("checkconfig") == {"ok": True, "messages": []}


def test_mistakes_are_told_with_id_and_hint_and_fail(tmp_path: Path) -> None:
    """A process of its own, because broken options must not stop Django before."""
    finished = run(tmp_path, {"presense": True, "history_recover": True}, "checkconfig")

    assert finished.returncode == 1
    assert (
        "error realtime.E002: Unknown option 'presense' (from the config file)." in finished.stdout
    )
    assert "error realtime.E007: history_recover of the top level" in finished.stdout
    assert "    Set both to more than 0" in finished.stdout
    assert finished.stderr == "CommandError: The configuration has 2 mistakes.\n"


def test_mistakes_are_told_as_json(tmp_path: Path) -> None:
    finished = run(tmp_path, {"presense": True, "publish": True}, "checkconfig", "--json")
    value = json.loads(finished.stdout)
    assert finished.returncode == 1
    assert value["ok"] is False
    assert ids(value) == [("realtime.E002", "error")]
    assert all(message["message"] and message["hint"] for message in value["messages"])


def test_options_of_a_file_with_nested_names_are_told(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    content = {"client": {"token": {"hmac_secret_key": "k" * 32}}, "log": {"level": "info"}}
    file.write_text(json.dumps(content))
    settings.REALTIME_CONFIG_FILE = str(file)

    lines = call("checkconfig").splitlines()

    assert lines[:3] == [
        "client.token.hmac_secret_key is token_hmac_secret_key",
        "log.level has no effect: Django's LOGGING decides",
        "warning realtime.W001: Option 'log.level' has no effect: Django's LOGGING decides.",
    ]
    assert call_json("checkconfig")["file_options"][0] == {
        "name": "client.token.hmac_secret_key",
        "kind": "option",
        "meaning": "token_hmac_secret_key",
    }


def test_warnings_alone_do_not_fail_and_silenced_ones_are_not_told(settings: Settings) -> None:
    settings.REALTIME = {"publish": True, "client_anonymous": True}
    value = call_json("checkconfig")
    assert value["ok"] is True
    assert ids(value) == [("realtime.W003", "warning")]
    settings.SILENCED_SYSTEM_CHECKS = ["realtime.W003"]
    assert call_json("checkconfig") == {"ok": True, "messages": []}


def test_checks_of_other_apps_are_not_told(settings: Settings) -> None:
    settings.STATICFILES_DIRS = "not a list"
    settings.REALTIME = {"client_anonymous": True}
    with pytest.raises(SystemCheckError, match=r"staticfiles\.E001"):
        call_command("check")
    assert call_json("checkconfig")["messages"] == []


@pytest.mark.parametrize(
    "arguments",
    [["gentoken", "17"], ["checktoken", "x"], ["info"], ["info", "--url", "http://127.0.0.1:9"]],
    ids=" ".join,
)
def test_other_commands_lead_to_checkconfig(settings: Settings, arguments: list[str]) -> None:
    settings.REALTIME = {"presense": True}
    with pytest.raises(
        CommandError, match=r"Unknown option 'presense' \(from settings\)\. See: .* checkconfig"
    ):
        call(*arguments)


def test_key_that_is_none_leads_to_checkconfig(settings: Settings) -> None:
    settings.REALTIME = {"token_rsa_public_key": "not PEM"}
    with pytest.raises(CommandError, match=r"token_rsa_public_key is not .*\. See: .*checkconfig"):
        call("checktoken", "x")


# genconfig


def fragment() -> dict[str, Any]:
    """The setting that genconfig prints."""
    namespace: dict[str, Any] = {}
    exec(call("genconfig"), namespace)
    found: dict[str, Any] = namespace["REALTIME"]
    return found


def test_settings_fragment_is_a_configuration() -> None:
    config = load(fragment())
    assert config.namespaces["chat"].history_recover


def test_secrets_are_long_and_new_each_time() -> None:
    one, other = fragment(), fragment()
    secrets = [each[name] for each in (one, other) for name in ("token_hmac_secret_key", "api_key")]
    assert len(set(secrets)) == 4
    assert min(map(len, secrets)) >= 32


@pytest.mark.parametrize("arguments", [["--format", "json"], ["--json"]], ids=" ".join)
def test_json_is_a_config_file_without_mistakes(tmp_path: Path, arguments: list[str]) -> None:
    config = json.loads(call("genconfig", *arguments))
    finished = run(tmp_path, config, "checkconfig", "--json")
    assert finished.returncode == 0, finished.stdout
    assert json.loads(finished.stdout) == {"ok": True, "messages": []}


def test_fragment_and_file_have_the_same_options() -> None:
    assert fragment().keys() == json.loads(call("genconfig", "--format", "json")).keys()
