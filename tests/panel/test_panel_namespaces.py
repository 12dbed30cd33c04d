"""The panel's page of options: what is in force, where it is from, and what stays hidden."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from admin_panel.pages.namespaces import GROUPS, value_of
from realtime.config import sources
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
from tests.panel.paths import page_path

pytestmark = pytest.mark.django_db

ROW = re.compile(r'<th scope="row"><code>(\w+)</code>(.*?)</tr>', re.DOTALL)
CELL = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")


def page(client: Client, **query: object) -> str:
    response = client.get(page_path("namespaces", **query))
    assert response.status_code == 200
    return response.content.decode()


def rows(html: str) -> dict[str, list[str]]:
    """Option → what its cells say, as the page lists them."""
    return {
        name: [" ".join(unescape(TAG.sub(" ", cell)).split()) for cell in CELL.findall(rest)]
        for name, rest in ROW.findall(html)
    }


def test_every_option_is_shown_once_with_what_it_means(admin_client: Client) -> None:
    html = page(admin_client)
    assert [name for name, _rest in ROW.findall(html)] == [*CHANNEL_OPTION_FIELDS, *CONFIG_FIELDS]
    for option in (*CHANNEL_OPTION_FIELDS.values(), *CONFIG_FIELDS.values()):
        assert option.metadata["meaning"] in unescape(html)


def test_channel_options_stand_beside_each_other(admin_client: Client, settings: Settings) -> None:
    settings.REALTIME = {
        "presence": True,
        "namespaces": [{"name": "chat", "history_size": 7, "history_lifetime": 60}, {"name": "b2"}],
    }

    html = page(admin_client)

    assert re.findall(r'<th scope="col"[^>]*><bdi class="panel-name">(.*?)<', html) == [
        "chat",
        "b2",
    ]
    assert rows(html)["presence"] == ["on settings", "off", "off"]
    assert rows(html)["history_size"] == ["0", "7", "0"]


def test_defaults_are_marked_and_what_is_set_is_too(
    admin_client: Client, settings: Settings
) -> None:
    settings.REALTIME = {"join_leave": True, "client_channel_limit": 5}

    html = page(admin_client)

    marks = re.findall(
        r'<tr id="option-\w+" class="panel-(set|default)">\s*<th scope="row"><code>(\w+)', html
    )
    assert [name for mark, name in marks if mark == "set"] == ["client_channel_limit"]
    row = html.partition("<code>join_leave</code>")[2].partition("</tr>")[0]
    assert 'class="panel-set"' in row
    assert 'class="panel-default"' not in row


def test_source_of_each_value_is_told(
    admin_client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"channel_max_length": 100, "client_channel_limit": 1, "name": "x"}))
    settings.REALTIME_CONFIG_FILE = str(file)
    settings.REALTIME = {"client_channel_limit": 2, "name": "y"}
    monkeypatch.setenv("SERVICE_NAME", "z")
    sources.forget(setting="REALTIME")

    found = rows(page(admin_client))

    assert found["channel_max_length"] == ["100", "config file"]
    assert found["client_channel_limit"] == ["2", "settings"]
    assert found["name"] == ["z", "environment"]
    assert found["hook_workers"] == ["8", "default"]


ADDRESSES = ("redis_url", "redis_cluster_addrs")
SECRETS = [
    name for name, option in CONFIG_FIELDS.items() if not option.repr and name not in ADDRESSES
]


def test_no_secret_is_shown(admin_client: Client, settings: Settings) -> None:
    values = {name: f"the-secret-of-{name}-that-nobody-may-see" for name in SECRETS}
    settings.REALTIME = {
        **values,
        "redis_url": "redis://:the-secret-of-redis@localhost:1",
        "database_url": "postgresql://me:the-secret-of-me@localhost/site",
        "database_notify_url": "postgresql://me:the-secret-of-me@localhost/site",
        "engine": "memory",
        "proxy_rpc_endpoint": "https://me:the-secret-of-me@app.example/rpc?key=the-secret-of-app",
    }

    html = page(admin_client)

    assert "the-secret-of" not in html
    assert rows(html)["redis_url"][0] == "redis://…@localhost:1"
    assert {name: rows(html)[name][0] for name in SECRETS} == dict.fromkeys(
        SECRETS, "set, not shown"
    )
    assert rows(html)["proxy_rpc_endpoint"][0] == "https://…@app.example/rpc?…"


@pytest.mark.parametrize("option", ADDRESSES)
def test_addresses_are_shown_without_their_passwords(option: str) -> None:
    urls = "redis://:the-secret@localhost:1/3,rediss://redis.example?password=the-secret"
    value = value_of(CONFIG_FIELDS[option], urls)
    assert value.text == "redis://…@localhost:1/3, rediss://redis.example?…"


@pytest.mark.parametrize(
    "url",
    [
        "redis://:1,2@localhost",
        "redis://user:12,3@localhost",
        "redis://localhost#the-secret",
        "redis://localhost/the-secret",
        "redis://[the-secret",
        "unix:///run/redis?password=the-secret",
        "the-secret@localhost",
    ],
)
def test_address_that_may_hold_a_password_is_not_shown(url: str) -> None:
    value = value_of(CONFIG_FIELDS["redis_url"], url)
    assert value.text == "set, not shown"


def test_secret_that_is_missing_is_said_to_be_so(admin_client: Client, settings: Settings) -> None:
    settings.REALTIME = {}
    assert rows(page(admin_client))["api_key"] == ["not set", "default"]


def test_warnings_of_the_system_checks_are_shown_with_their_advice(
    admin_client: Client, settings: Settings
) -> None:
    settings.REALTIME = {"namespaces": [{"name": "chat", "publish": True}]}
    shown = unescape(page(admin_client).partition('id="option-warnings"')[2].partition("</ul>")[0])
    assert "Any client may publish into any channel of namespace 'chat'" in shown
    assert "Set subscribe_to_publish" in shown
    assert "realtime.W003" in shown


def test_warning_that_the_site_silenced_is_not_shown(
    admin_client: Client, settings: Settings
) -> None:
    settings.REALTIME = {"namespaces": [{"name": "chat", "publish": True}]}
    settings.SILENCED_SYSTEM_CHECKS = ["realtime.W003"]
    assert "realtime.W003" not in page(admin_client)


def test_file_that_changed_after_the_start_is_worth_a_warning(
    admin_client: Client, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"presence": true}')
    settings.REALTIME_CONFIG_FILE = str(file)
    sources.forget(setting="REALTIME")
    text = "The options have changed since this process started."
    assert text not in page(admin_client)

    file.write_text('{"presence": false}')

    html = page(admin_client)
    assert text in html
    assert rows(html)["presence"] == ["on config file"], "it shows what is in force"


def test_only_what_is_set_can_be_shown(admin_client: Client, settings: Settings) -> None:
    settings.REALTIME = {
        "client_channel_limit": 5,
        "channel_max_length": CONFIG_FIELDS["channel_max_length"].default,
        "namespaces": [{"name": "chat", "presence": True}],
    }

    assert list(rows(page(admin_client, set=1))) == [
        "presence",
        "channel_max_length",
        "client_channel_limit",
    ]


def test_time_is_shown_in_words_with_its_seconds(admin_client: Client, settings: Settings) -> None:
    settings.REALTIME = {"namespaces": [{"name": "chat", "history_lifetime": 604_800}]}
    assert rows(page(admin_client))["history_lifetime"] == ["0", "7 days 604800"]


def test_search_finds_words_in_names_and_meanings(admin_client: Client, settings: Settings) -> None:
    settings.REALTIME = {"history_size": 5, "redis_connect_timeout": 2}
    assert list(rows(page(admin_client, q="HISTORY size", set=1))) == ["history_size"]
    assert list(rows(page(admin_client, q="connecting redis"))) == ["redis_connect_timeout"]
    nothing = page(admin_client, q="<b>nothing")
    assert rows(nothing) == {}
    assert "No channel option matches." in nothing
    assert "<b>nothing" not in nothing


def test_site_without_namespaces_is_said_to_have_none(
    admin_client: Client, settings: Settings
) -> None:
    settings.REALTIME = {}
    assert "No namespace is configured" in page(admin_client)
    assert "No channel option is set." in page(admin_client, set=1)


def test_twenty_namespaces_are_columns_of_one_table(
    admin_client: Client, settings: Settings
) -> None:
    names = [f"namespace-{number:02}" for number in range(19)] + ["n" * 255]
    settings.REALTIME = {"namespaces": [{"name": name} for name in names]}
    html = page(admin_client)
    assert "20 namespaces" in html
    assert rows(html)["presence"] == ["off"] * 21
    assert 'tabindex="0" role="group"' in html, "it cannot be scrolled with the keyboard"


VALUES: list[tuple[str, Any, str, bool]] = [
    ("allowed_origins", None, "not set", True),
    ("allowed_origins", (), "none", False),
    ("allowed_origins", ("https://a", "https://b"), "https://a https://b", False),
    ("client_insecure", False, "off", True),
    ("client_insecure", True, "on", False),
    ("redis_host", "", "empty", True),
    ("hook_timeout", 2.5, "2.5", False),
    ("token_lifetime", 604_800, "7 days", False),
    ("token_lifetime", 60, "1 minute", False),
    ("token_lifetime", 59, "59", False),
    ("token_lifetime", 61, "61", False),
    ("token_lifetime", 90_060, "90060", False),
    ("redis_history_meta_ttl", 2_592_000, "30 days", True),
    ("client_channel_limit", 3600, "3600", False),
    ("channel_private_prefix", "$", "$", True),
    ("proxy_rpc_endpoint", "http://[", "http://[", False),
]


@pytest.mark.parametrize(
    ("name", "value", "text", "is_default"), VALUES, ids=[f"{row[0]} {row[2]}" for row in VALUES]
)
def test_value_is_shown_in_words(name: str, value: Any, text: str, is_default: bool) -> None:
    shown = value_of(CONFIG_FIELDS[name], value)
    assert (shown.text, shown.is_default) == (text, is_default)


def test_groups_begin_with_options_that_there_are() -> None:
    assert set(GROUPS) <= set(CONFIG_FIELDS)
    assert next(iter(CONFIG_FIELDS)) in GROUPS


def test_page_cannot_be_posted_to(admin_client: Client, settings: Settings) -> None:
    settings.REALTIME = {}
    admin_client.post(page_path("namespaces"), {"presence": "on"})
    assert rows(page(admin_client))["presence"] == ["off"]
