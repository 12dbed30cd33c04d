"""The permission to publish into one namespace cannot be stretched, whatever markers are set."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import LogEntry
from hypothesis import example, given
from hypothesis import strategies as st
from pytest_django import Settings

from realtime.channel_rules import namespace_of, options_of
from realtime.config.options import ChannelOptions, Config
from realtime.config.reader import load
from realtime.errors import NamespaceNotFound
from tests.panel.urls import configure, url
from tests.panel.urls import signed_in as sign_in

PIECES = ["chat", "alerts", "gone", ":", "::", "/", "$", "$$", "#", "a", ""]
MARKERS = st.sampled_from(["", ":", "::", "/", "$", "$$", "chat", "chat:"])
CHANNELS = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)


def options_in_force(channel: str, config: Config) -> ChannelOptions | None:
    """The options the service publishes with; None where it refuses the channel."""
    try:
        return options_of(channel, config)
    except NamespaceNotFound:
        return None


@example(boundary=":", prefix="p:", user="", channel="p:chat")
@given(boundary=MARKERS, prefix=MARKERS, user=MARKERS, channel=CHANNELS)
def test_namespace_that_is_asked_for_permission_is_the_one_whose_options_are_in_force(
    boundary: str, prefix: str, user: str, channel: str
) -> None:
    config = load(
        {
            "channel_namespace_boundary": boundary,
            "channel_private_prefix": prefix,
            "channel_user_boundary": user,
            "namespaces": [{"name": "chat", "presence": True}, {"name": "alerts"}],
        }
    )

    namespace = namespace_of(channel, config)

    found = options_in_force(channel, config)
    if namespace:
        assert found is config.namespaces.get(namespace)
    else:
        assert found is config.channel


BOUNDARIES = [
    (":", "$", "demo:a", True),
    (":", "$", "demo/a", False),
    ("/", "$", "demo/a", True),
    ("/", "$", "demo:a", False),
    ("/", "$", "demo:a/b", False),
    ("::", "$", "demo:a", False),
    ("::", "$", "demo::a", True),
    (":", "p-", "p-demo:a", True),
    (":", "p-", "$demo:a", False),
    (":", "", "$demo:a", False),
    ("", "$", "demo:a", False),
    (":", "demo:", "demo:a", False),
    (":", "p:", "p:demo:a", True),
    (":", "p:", "p:demo", False),
    ("$$", "$", "$$demo", False),
    (":", "demo:", "demo:chat:a", False),
    (":", "$", "demo:chat:a", True),
    (":", "$", "chat:demo:a", False),
    (":", "$", "$demo:a", True),
    (":", "$", "$:a", False),
    (":", "$", "gone:a", False),
]
"""Namespace boundary, private prefix, channel, and whether it is one of the namespace demo."""


@pytest.mark.django_db
@pytest.mark.parametrize(("boundary", "prefix", "channel", "allowed"), BOUNDARIES)
def test_permission_follows_the_markers_that_are_in_force(
    settings: Settings, home: str, boundary: str, prefix: str, channel: str, allowed: bool
) -> None:
    markers = {"channel_namespace_boundary": boundary, "channel_private_prefix": prefix}
    configure(settings, **markers)
    client = sign_in("view", "publish_demo")
    publish = {"method": "publish", "params": json.dumps({"channel": channel, "data": 1})}
    broadcast = {"method": "broadcast", "params": json.dumps({"channels": [channel], "data": 1})}

    statuses = [
        client.post(url(home, "publish"), {"channel": channel, "data": "1"}).status_code,
        *(client.post(url(home, "console_run"), form).status_code for form in (publish, broadcast)),
    ]

    # what is let through is told by a page, and by JSON, that the service is away
    assert statuses == ([200, 503, 503] if allowed else [403, 403, 403])


@pytest.mark.django_db
def test_permission_taken_away_holds_for_the_next_request(settings: Settings) -> None:
    configure(settings)
    client = sign_in("publish_demo")
    form = {"channel": "demo:a", "data": "1"}
    before = client.post(url("admin", "publish"), form).status_code
    settings.REALTIME = settings.REALTIME | {"namespaces": [{"name": "other"}]}
    assert before == 200
    assert client.post(url("admin", "publish"), form).status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/api", "/api"])
def test_login_of_a_user_opens_no_endpoint_of_the_server_api(settings: Settings, path: str) -> None:
    configure(settings, api_key="k" * 20)
    client = sign_in("view", "publish", "publish_demo", superuser=True)
    body = '{"method": "publish", "params": {"channel": "chat:a", "data": 1}}'
    response = client.post(path, body, content_type="application/json")
    assert response.status_code == 401


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1000, 1001, 50_000])
def test_broadcast_of_the_console_has_the_limit_of_the_publish_page(
    settings: Settings, home: str, count: int
) -> None:
    configure(settings)
    client = sign_in("view", "publish_demo")
    params = json.dumps({"channels": ["demo:a"] * count, "data": 1})
    form = {"method": "broadcast", "params": params}

    page = client.post(url(home, "console"), form)
    part = client.post(url(home, "console_run"), form)

    if count <= 1000:
        assert (page.status_code, part.status_code) == (503, 503)
    else:
        assert f"{count} channels are too many" in page.content.decode()
        assert f"{count} channels are too many" in part.json()["errors"]["params"]
    assert not LogEntry.objects.exists()
