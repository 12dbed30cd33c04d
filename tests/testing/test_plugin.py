"""The fixtures in a site of its own, and in projects that know nothing of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.testing.projects import KIT, Project

SUITE = """
import threading

import pytest
from django.db import transaction

import realtime


@pytest.fixture
def room(django_user_model):
    from chat.models import Room

    user = django_user_model.objects.create_user("alice")
    Room.objects.create(name="lobby").members.add(user)
    return user


def test_outbox_needs_no_database(realtime_outbox):
    realtime.publish("news", 1)
    assert realtime_outbox == [("news", 1)]


@pytest.mark.parametrize("number", [1, 2])
def test_outbox_is_new_for_each_test(realtime_outbox, number):
    assert realtime_outbox == []
    realtime.publish("news", number)


def test_nothing_runs_where_no_fixture_is_asked_for():
    with pytest.raises(realtime.NotServing):
        realtime.publish("news", 1)
    assert not [t for t in threading.enumerate() if "realtime" in t.name]


def test_client_before_database(realtime_client, room):
    with realtime_client(room) as alice:
        alice.subscribe("chat:lobby")


def test_database_before_client(room, realtime_client, realtime_outbox):
    with realtime_client(room) as alice:
        alice.subscribe("chat:lobby")
        with transaction.atomic():
            realtime.publish("chat:lobby", 1)
        alice.expect("chat:lobby", 1)
    assert realtime_outbox == [("chat:lobby", 1)]


def test_client_that_stays_open(realtime_client):
    realtime_client("17").connect()


@pytest.mark.django_db(transaction=True)
def test_real_transactions(room, realtime_client):
    with realtime_client(room) as alice:
        alice.subscribe("chat:lobby")
        with transaction.atomic():
            realtime.publish("chat:lobby", 1)
        alice.expect("chat:lobby", 1)
        assert alice.rpc("count", "lobby") == 0


def test_options_of_one_test(realtime_client, realtime_settings):
    realtime_settings(client_anonymous=True)
    realtime_settings(anonymous=True)
    with realtime_client() as anybody:
        anybody.subscribe("news")


def test_options_are_as_before(realtime_client):
    with pytest.raises(realtime.errors.DisconnectBadRequest):
        realtime_client().connect()


def test_service_answers_without_clients(realtime_service):
    assert realtime.channels() == []


@pytest.mark.asyncio
async def test_asynchronous(realtime_client, realtime_outbox):
    async with realtime_client("17") as client:
        await client.asubscribe("news")
        await realtime.apublish("news", 1)
        await client.aexpect("news", 1)
    assert realtime_outbox == [("news", 1)]
"""

WITHOUT = """
import sys


def test_plugin_loads_nothing_of_django():
    assert "realtime.testing.plugin" in sys.modules
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & {"django", "channels", "asgiref", "msgspec"}
    assert [name for name in sys.modules if name.startswith("realtime")] == [
        "realtime", "realtime.testing", "realtime.testing.plugin"
    ]
"""

NO_DJANGO = ("-c", os.devnull, "-W", "error", "-p", "no:django", "-p", "no:asyncio")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_suite_of_a_site_passes_with_the_plugin_named_and_a_database_on_disk(
    project: Project,
) -> None:
    project.write({"chat/test_suite.py": SUITE})
    assert "12 passed" in project.run("pytest", *KIT, "chat", settings="settings_on_disk")


def test_suite_of_a_site_passes_with_the_package_installed(project: Project) -> None:
    project.install()
    project.write({"chat/test_suite.py": SUITE})
    assert "12 passed" in project.run("pytest", "chat")
    assert "1 passed" in project.run("pytest", *KIT, "chat", "-k", "database_before"), "named, too"


def test_project_without_django_notices_nothing(project: Project) -> None:
    project.install()
    project.write({"plain/test_plain.py": WITHOUT})
    output = project.run("pytest", *NO_DJANGO, "plain", settings="")
    assert "1 passed" in output


def test_failing_expectation_fails_the_test_and_says_what_came(project: Project) -> None:
    project.write(
        {
            "chat/test_failing.py": """
import realtime


def test_wrong(realtime_client):
    with realtime_client("17") as client:
        client.subscribe("news")
        realtime.publish("news", {"text": "hi"})
        client.expect("news", {"text": "ho"})


def test_right(realtime_client):
    with realtime_client("17") as client:
        client.expect_nothing()
"""
        }
    )

    done = project.start("pytest", *KIT, "chat")

    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "is {'text': 'hi'}, not {'text': 'ho'}" in done.stdout
