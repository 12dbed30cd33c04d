"""The page of durable publications: what waits, and what operators do with what was refused."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from admin_panel import audit
from realtime.pending.models import Pending, at_once, shard_of
from realtime.serving import serving
from tests.panel.urls import signed_in as sign_in
from tests.panel.urls import url

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured")]


def park(channel: str, data: str = "1") -> Pending:
    """A row that the service refused."""
    return Pending.objects.create(
        shard=shard_of(channel),
        channel=channel,
        data=data,
        created=timezone.now(),
        attempts=3,
        error="NamespaceNotFound: namespace not found",
    )


def test_page_shows_what_waits_and_what_was_refused(home: str) -> None:
    park("<b>:1", '"<i>' + "x" * 300 + '"')
    waiting = park("demo:a")
    waiting.due, waiting.created = at_once(), timezone.now() - timedelta(minutes=2)
    waiting.save()

    response = sign_in("view").get(url(home, "pending"))

    text = response.content.decode()
    assert response.status_code == 200
    assert re.findall(r"<dd>(\d+)</dd>", text) == ["1", "0", "1"]
    assert 'id="pending-late"' in text
    assert "&lt;b&gt;:1" in text
    assert "&lt;i&gt;xxx" in text
    assert "x" * 200 not in text
    assert "namespace not found" in text
    assert "pending/drop" not in text


def test_one_is_retried_and_the_log_names_its_channel(home: str) -> None:
    row, other = park("demo:a"), park("demo:b")
    client = sign_in("view", "manage_pending")
    page = client.get(url(home, "pending")).content.decode()
    [link] = re.findall(r'href="([^"]*/retry/[^"]*demo%3Aa[^"]*)"', page)
    link = link.replace("&amp;", "&")

    assert "1 publication will be tried again" in client.get(link).content.decode()
    assert client.post(link, follow=True).status_code == 200

    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.due, row.attempts, row.error) == (at_once(), 0, "")
    assert other.due is None
    [entry] = audit.entries(audit.RETRY)
    assert (entry.object_id, audit.detail_of(entry)) == ("demo:a", row.key.hex)


def test_all_are_dropped(home: str) -> None:
    park("demo:a")
    park("demo:b")
    client = sign_in("view", "manage_pending")
    question = client.get(url(home, "pending_drop")).content.decode()
    assert "2 publications will be deleted" in question

    response = client.post(url(home, "pending_drop"), follow=True)

    assert "2 publications were dropped." in response.content.decode()
    assert not Pending.objects.exists()
    [entry] = LogEntry.objects.all()
    assert (entry.object_id, entry.change_message) == ("*", "Dropped")


@pytest.mark.parametrize("name", ["pending_retry", "pending_drop"])
@pytest.mark.parametrize(
    "channel", ["demo:b", "Demo:a", ""], ids=["another", "another case", "none"]
)
def test_key_of_another_channel_does_nothing_and_is_not_logged(
    home: str, name: str, channel: str
) -> None:
    row = park("demo:a")
    client = sign_in("view", "manage_pending")
    client.post(url(home, name, key=row.key.hex, channel=channel))
    client.post(url(home, name, key="no key", channel="demo:a"))
    client.post(url(home, name, channel="demo:a"))
    assert Pending.objects.get().due is None
    assert not LogEntry.objects.exists()


def test_table_that_is_missing_is_said(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pending._meta, "db_table", "not_migrated")
    response = sign_in("view").get(url(home, "pending"))
    assert response.status_code == 503
    assert b"manage.py migrate" in response.content


def test_site_without_the_app_has_no_such_page(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "pending", None)
    client = sign_in("view", "manage_pending")
    assert client.get(url(home, "pending")).status_code == 403
    assert b"/pending/" not in client.get(url(home, "namespaces")).content
