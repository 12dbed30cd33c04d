"""The publish page of the admin in a served site: who may, what arrives, what is logged."""

from __future__ import annotations

import httpx
import pytest
from django.contrib.admin.models import LogEntry

from tests.live.panel_site import OPERATOR, Guests
from tests.live.panel_staff import Staff, logged
from tests.live.publish_page import PAGE, errors_of_channel, field, recent, send
from tests.protocol_client import ProtocolClient
from tests.ready_site import ReadySite


@pytest.fixture
async def subscriber(guests: Guests, unique: str) -> ProtocolClient:
    """A client that is subscribed to the channel of the test."""
    return await guests.open("17", unique)


@pytest.mark.parametrize("user", [OPERATOR, "editor"], ids=["superuser", "staff with permission"])
async def test_publication_reaches_a_subscriber(
    staff: Staff, subscriber: ProtocolClient, unique: str, user: str
) -> None:
    response = send(staff[user], unique, '{"text": "hi"}')
    assert await subscriber.publication() == {"data": {"text": "hi"}}
    assert f"Published into {unique}." in response.text


async def test_data_arrive_as_they_were_typed(
    operator: httpx.Client, subscriber: ProtocolClient, unique: str
) -> None:
    send(operator, unique, '{"b":1.0,"a":12345678901234567890123}')
    await subscriber.publication()
    assert '{"b":1.0,"a":12345678901234567890123}' in str(subscriber.frames[-1])


def test_publication_is_an_entry_of_the_admin_log(staff: Staff, unique: str) -> None:
    browser = staff["editor"]

    send(browser, unique, f'["{unique}-data"]')

    index = browser.get("/admin/").text
    assert unique in index.partition("Recent actions")[2]
    [row] = [row for row in recent(browser.get(PAGE).text) if unique in row]
    assert f'["{unique}-data"]' in row
    assert "editor" in row


LIKE_DJANGO_S_OWN = ["[1, 2]", '[{"added": {"name": "user", "object": "root"}}]', "[]"]
"""JSON that begins as the change messages do that Django writes itself and turns into words."""


@pytest.mark.parametrize("data", LIKE_DJANGO_S_OWN)
def test_entry_of_the_log_shows_the_data_and_reads_as_nothing_else(
    staffed_site: ReadySite, operator: httpx.Client, unique: str, data: str
) -> None:
    send(operator, unique, data)

    [(_name, _model, _target, message)] = logged(staffed_site, unique)
    shown = LogEntry(change_message=message).get_change_message()
    assert data in shown
    assert "Added" not in shown
    [row] = [row for row in recent(operator.get(PAGE).text) if unique in row]
    assert f"<code>{data}</code>" in row


def test_unknown_namespace_is_an_error_of_the_channel_field(
    operator: httpx.Client, unique: str
) -> None:
    response = send(operator, f"nope-{unique}:a", '"kept"')
    assert response.status_code == 200
    assert "Error 102: namespace not found." in errors_of_channel(response.text)
    assert field(response.text, "data") == '"kept"'
    assert f"nope-{unique}:a" not in operator.get("/admin/").text, "it was logged"
