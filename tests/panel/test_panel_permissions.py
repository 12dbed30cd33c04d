"""Who may open which page of the panel, and what each of them is sent with.

In this process no client is served: pages that show the service say so, which is as good as
their contents here.
"""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db.models import QuerySet
from django.test import Client
from django.urls import path, reverse
from pytest_django import Settings

from admin_panel.admin import register
from admin_panel.permissions import CODENAME_MAX_LENGTH
from tests.panel.urls import signed_in as sign_in
from tests.panel.urls import url

VIEWED = (
    "overview",
    "events",
    "channels",
    "user",
    "why",
    "pending",
    "log",
    "namespaces",
    "console",
)
LISTED = (*VIEWED[:5], "publish", *VIEWED[5:])
"""Pages of the tab bar and the admin's index."""

other_site = admin.AdminSite("other")
register(other_site)
urlpatterns = [path("admin/", admin.site.urls), path("other/", other_site.urls)]

pytestmark = pytest.mark.django_db


@pytest.fixture
def namespaces(settings: Settings) -> None:
    """A site with two namespaces, migrated."""
    configure(settings, "chat", "alerts")


@pytest.fixture(autouse=True)
def no_namespace_permissions(db: None) -> None:
    """Tests that flush the database leave permissions of their namespaces."""
    of_namespaces().delete()


def configure(settings: Settings, *names: str) -> None:
    """Configure these namespaces and migrate, as a deployment would."""
    settings.REALTIME = {"namespaces": [{"name": name} for name in names]}
    call_command("migrate", verbosity=0)


def of_namespaces() -> QuerySet[Permission]:
    return Permission.objects.filter(
        content_type__app_label="realtime_admin", codename__startswith="publish_"
    )


def namespace_permissions() -> set[str]:
    return set(of_namespaces().values_list("codename", flat=True))


def place(page: str) -> str:
    """The path of a page."""
    return url("admin", page).partition("?")[0]


# who may open what


def test_user_who_was_deactivated_is_sent_to_the_login() -> None:
    client = sign_in("view")
    User.objects.update(is_active=False)
    assert client.get(url("admin", "overview")).status_code == 302


def test_refusal_names_the_user_and_shows_no_tab_that_would_be_refused() -> None:
    text = sign_in("publish").get(url("admin", "overview")).content.decode()
    assert "<bdi>staff</bdi>" in text
    tabs = text.partition('class="panel-tabs"')[2].partition("</nav>")[0]
    assert url("admin", "publish") in tabs
    assert url("admin", "overview") not in tabs


MISSING = {
    "overview": ((), "view"),
    "publish": (("view",), "publish"),
    "frames": (("view",), "trace"),
    "channel_remove": (("view",), "remove_history"),
    "user_disconnect": (("view",), "disconnect"),
    "pending_drop": (("view",), "manage_pending"),
}
"""Page → permissions of an operator who may not open it, and the one that is missing."""


@pytest.mark.parametrize("page", MISSING)
def test_refusal_names_the_permission_that_is_missing(page: str) -> None:
    codenames, missing = MISSING[page]
    response = sign_in(*codenames).get(url("admin", page))
    assert response.status_code == 403
    assert f"<code>realtime_admin.{missing}</code>" in response.content.decode()


@pytest.mark.parametrize("codenames", [(), ("publish",)], ids=["nothing", "publish"])
def test_refusal_links_to_nothing_that_is_not_there(codenames: tuple[str, ...]) -> None:
    client = sign_in(*codenames)
    text = client.get(url("admin", "overview")).content.decode()
    content = text.partition('class="breadcrumbs"')[2].partition('id="footer"')[0]
    links = re.findall(r'<a href="(/[^"]*)"', content)
    assert {client.get(unescape(link)).status_code for link in links} == {200}


@pytest.mark.parametrize(
    ("codenames", "shown"),
    [
        ((), ()),
        (("view",), VIEWED),
        (("publish",), ("publish",)),
        (("view", "publish"), LISTED),
        (("disconnect",), ()),
    ],
    ids=lambda value: "+".join(value) or "nothing",
)
def test_index_lists_the_pages_that_may_be_opened(
    codenames: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    text = sign_in(*codenames).get("/admin/").content.decode()
    assert [page for page in LISTED if f'href="{place(page)}"' in text] == list(shown)


# per namespace


@pytest.mark.django_db(transaction=True)
def test_permissions_of_namespaces_are_there_after_a_flush(settings: Settings) -> None:
    settings.REALTIME = {"namespaces": [{"name": "chat"}, {"name": "news"}]}
    call_command("flush", interactive=False, verbosity=0)
    assert namespace_permissions() == {"publish_chat", "publish_news"}


@pytest.mark.usefixtures("namespaces")
def test_permission_of_a_namespace_that_is_gone_is_kept(settings: Settings) -> None:
    configure(settings, "alerts", "news")
    assert namespace_permissions() == {"publish_chat", "publish_alerts", "publish_news"}


def test_namespace_with_a_name_too_long_for_a_permission_is_left_out(
    settings: Settings,
) -> None:
    longest = "n" * (CODENAME_MAX_LENGTH - len("publish_"))
    configure(settings, longest, longest + "n")
    assert namespace_permissions() == {f"publish_{longest}"}


# what pages are sent with


def test_policy_names_the_encrypted_socket_of_a_page_that_came_encrypted(
    admin_client: Client,
) -> None:
    response = admin_client.get(url("admin", "publish"), secure=True)
    assert "connect-src 'self' wss://testserver;" in response["Content-Security-Policy"]


# other homes


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("site", ["admin", "other"])
def test_pages_of_an_admin_site_link_to_that_site(admin_client: Client, site: str) -> None:
    text = admin_client.get(f"/{site}/realtime_admin/publication/").content.decode()
    tabs = text.partition('class="panel-tabs"')[2].partition("</nav>")[0]
    assert f'href="/{site}/realtime_admin/overview/"' in tabs
    assert tabs.count("href=") == len(LISTED)
    assert tabs.count(f'href="/{site}/') == len(LISTED)


# options with mistakes


@pytest.mark.parametrize("codenames", [(), ("view",), ("publish_chat",)], ids=repr)
def test_mistake_in_the_options_takes_nothing_of_the_admin_but_the_panel(
    settings: Settings, codenames: tuple[str, ...], namespaces: None
) -> None:
    client = sign_in(*codenames)
    settings.REALTIME = {"nope": 1}
    for visitor in (Client(), client):
        login = visitor.get(reverse("admin:login"))
        assert login.status_code == (200 if visitor is not client else 302)
    index = client.get(reverse("admin:index"))
    assert index.status_code == 200
    assert place("publish") not in index.content.decode()
