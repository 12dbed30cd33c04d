"""The panel by itself: when it is there, who is let in, and what is logged.

No client is served in this process, and a page that says so is as good as its contents.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import authenticate
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.core.exceptions import ValidationError
from django.test import Client
from pytest_django import Settings

from admin_panel import audit
from admin_panel.pages import PAGES
from admin_panel.standalone.shared_operator import PLACEHOLDER_NAME, SharedOperator
from messaging_project.management.commands.serve import describe
from realtime.config import sources
from realtime.config.options import CONFIG_FIELDS
from realtime.config.reader import InvalidOptions
from tests.panel.standalone_parts import (
    ON,
    PASSWORD,
    PATHS,
    SIGN_IN,
    SIGN_OUT,
    begin_counting,
    is_open,
    new_address,
)

Come = Callable[..., Client]


@pytest.fixture
def come(settings: Settings) -> Come:
    """Configure the panel, and come to it: `come(admin_insecure=True)`."""

    def come(**options: object) -> Client:
        settings.REALTIME = ON | options
        return Client(headers={"X-Forwarded-For": new_address()})

    return come


# on and off


def test_panel_that_is_off_leaves_the_site_as_it_is(come: Come) -> None:
    client = come(admin=False)
    assert client.get("/")["Location"] == "/demo"
    for path in (*PATHS[1:], SIGN_IN, SIGN_OUT):
        assert client.get(path).status_code == 404, path
    for path in ("/admin/auth", "/admin/api"):
        response = client.post(path, {"password": PASSWORD})
        # whatever Django's admin says to a path that it does not know
        assert response.status_code in (302, 404)


def test_site_without_the_demo_gives_nobody_a_token(come: Come, settings: Settings) -> None:
    client = come(admin=False)
    settings.DEMO = False
    assert client.get("/")["Location"] == "/admin/"
    assert [client.get(path).status_code for path in ("/demo", "/demo/token")] == [404, 404]
    assert "/demo" not in describe("http://127.0.0.1")


def test_wrong_options_do_not_take_the_site_down(come: Come) -> None:
    client = come(no_such_option=1)
    with pytest.raises(InvalidOptions):
        sources.current()
    assert client.get("/")["Location"] == "/demo"


@pytest.mark.parametrize("on", [True, False])
def test_start_of_the_ready_site_tells_where_the_panel_is(come: Come, on: bool) -> None:
    come(admin=on)
    assert ("Panel:      http://host/\n" in describe("http://host")) is on


@pytest.mark.parametrize("missing", ["admin_password", "admin_secret"])
def test_without_password_or_secret_nobody_signs_in(come: Come, missing: str) -> None:
    client = come(**{missing: ""})

    page = client.get(SIGN_IN)
    client.post(SIGN_IN, {"password": PASSWORD})
    client.post(SIGN_IN, {"password": "x"})

    assert "No password is set for the panel." in page.content.decode()
    assert not is_open(client)
    for password in (PASSWORD, "", "x"):
        assert client.post("/admin/auth", {"password": password}).status_code == 400
    header = {"Authorization": "token x"}
    assert client.post("/admin/api", headers=header).status_code == 401


# without a password


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("debug", "options", "opened"),
    [
        pytest.param(True, {}, True, id="development"),
        pytest.param(False, {}, False, id="production"),
        pytest.param(False, {"admin_insecure_in_production": True}, True, id="both options"),
    ],
)
def test_insecure_panel_needs_debug_or_a_second_option(
    come: Come, settings: Settings, debug: bool, options: dict[str, object], opened: bool
) -> None:
    settings.DEBUG = debug
    client = come(admin_insecure=True, admin_password="", **options)

    assert is_open(client) is opened
    if opened:
        page = client.get("/").content.decode()
        assert "No password is needed here" in page
        assert SIGN_OUT not in page
        answer = client.post("/admin/auth")
        assert (answer.status_code, answer.content) == (200, b'{"token":"insecure"}\n')
    else:
        assert client.post("/admin/auth").status_code == 400


def test_second_option_alone_opens_nothing(come: Come) -> None:
    assert not is_open(come(admin_insecure_in_production=True))


@pytest.mark.parametrize(("token", "refused"), [("insecure", False), ("x", True), (None, True)])
def test_insecure_commands_need_the_token_that_is_given(
    come: Come, settings: Settings, token: str | None, refused: bool
) -> None:
    settings.DEBUG = True
    client = come(admin_insecure=True)
    headers = {} if token is None else {"Authorization": f"token {token}"}
    response = client.post("/admin/api", b"{", content_type="text/plain", headers=headers)
    # this process serves nobody, so what is let in is told 503
    assert response.status_code == (401 if refused else 503)


def test_insecure_panel_still_refuses_forms_of_other_sites(come: Come, settings: Settings) -> None:
    settings.DEBUG = True
    come(admin_insecure=True)
    response = Client(enforce_csrf_checks=True).post("/publication/", {"channel": "a", "data": "1"})
    assert response.status_code == 403


# users of Django


def user(*codenames: str, is_staff: bool = True, is_active: bool = True) -> User:
    """A user with these permissions of the panel."""
    made = User.objects.create_user("somebody", is_staff=is_staff, is_active=is_active)
    for codename in codenames:
        made.user_permissions.add(
            Permission.objects.get(content_type__app_label="realtime_admin", codename=codename)
        )
    return made


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("codenames", "flags", "opened"),
    [
        pytest.param(["view"], {}, True, id="staff with a permission"),
        pytest.param([], {}, False, id="staff without permissions"),
        pytest.param(["view"], {"is_staff": False}, False, id="no staff"),
    ],
)
def test_users_who_may_use_the_panel_need_no_password(
    come: Come, codenames: list[str], flags: dict[str, bool], opened: bool
) -> None:
    client = come()
    client.force_login(user(*codenames, **flags))
    assert is_open(client) is opened
    if opened:
        assert "somebody" in client.get("/").content.decode()


@pytest.mark.django_db
def test_user_who_may_not_open_the_first_page_begins_at_the_next(come: Come) -> None:
    client = come()
    client.force_login(user("publish"))
    assert client.get("/")["Location"] == "/publication/"
    assert client.get("/overview/data/").status_code == 403


@pytest.mark.django_db
def test_user_with_the_password_may_do_everything(come: Come) -> None:
    client = come()
    client.force_login(user("view"))
    client.post(SIGN_IN, {"password": PASSWORD})
    assert client.get("/publication/").status_code == 200


@pytest.mark.django_db
def test_signing_out_ends_the_login_of_a_user(come: Come) -> None:
    client = come()
    client.force_login(user("view"))
    response = client.post(SIGN_OUT)
    assert response["Location"] == SIGN_IN
    assert not is_open(client)
    assert "_auth_user_id" not in client.session


def test_sign_in_page_leads_to_the_login_of_users(come: Come) -> None:
    page = come().get(SIGN_IN, {"next": "/channels/?q=a b"}).content.decode()
    assert 'href="/admin/login/?next=%2Fchannels%2F%3Fq%3Da+b"' in page


@pytest.mark.django_db
def test_new_password_ends_every_session(come: Come) -> None:
    client = come()
    client.post(SIGN_IN, {"password": PASSWORD})
    before = is_open(client)
    cookies = client.cookies
    client = come(admin_password="a new one for everybody")
    client.cookies = cookies
    assert before
    assert not is_open(client)


@pytest.mark.django_db
def test_cache_that_is_away_keeps_nobody_out_and_still_counts(
    come: Come, settings: Settings
) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1",
        }
    }
    begin_counting()
    client = come()

    client.post(SIGN_IN, {"password": PASSWORD})
    opened = is_open(client)
    client.post(SIGN_OUT)
    statuses = [client.post(SIGN_IN, {"password": "no"}).status_code for _ in range(11)]

    assert opened
    assert not is_open(client)
    assert statuses == [200] * 10 + [429]


# its look


@pytest.mark.django_db
def test_pages_are_at_the_root_with_their_tabs_beside_the_site(come: Come) -> None:
    client = come()
    client.post(SIGN_IN, {"password": PASSWORD})
    page = client.get("/namespaces/").content.decode()
    tabs = [place for page, place in zip(PAGES, PATHS, strict=True) if page.listed]
    assert [place for place in tabs if f'<a href="{place}"' not in page] == []
    assert "/admin/realtime_admin/" not in page
    assert Client().get("/admin/login/").status_code == 200


def test_name_and_colour_tell_the_panels_of_two_sites_apart(come: Come) -> None:
    client = come(admin_name="Shop <staging>", admin_accent="violet")
    before = client.get(SIGN_IN).content.decode()
    client.post(SIGN_IN, {"password": PASSWORD})
    pages = [before, client.get("/namespaces/").content.decode()]
    for page, title in zip(pages, ["Sign in", "Namespaces"], strict=True):
        assert f"<title>{title} | Shop &lt;staging&gt;</title>" in " ".join(page.split())
        assert "<bdi>Shop &lt;staging&gt;</bdi>" in page
        assert "panel-accent-violet" in page


@pytest.mark.parametrize("accent", CONFIG_FIELDS["admin_accent"].metadata["choices"])
def test_every_colour_has_a_rule(come: Come, accent: str) -> None:
    page = come(admin_accent=accent).get(SIGN_IN).content.decode()
    assert ("panel-accent" in page) is bool(accent)
    if accent:
        style = Path(str(finders.find("admin_panel/standalone.css"))).read_text()
        assert f".panel-accent-{accent} {{" in style
        assert f"panel-accent-{accent}" in page


# the log


@pytest.mark.django_db
def test_actions_are_logged_for_a_user_nobody_can_be() -> None:
    for target in ("one", "two"):
        with SharedOperator().logged(audit.DISCONNECT, target):
            pass

    entries = LogEntry.objects.all()
    (placeholder,) = User.objects.all()
    assert [entry.user for entry in entries] == [placeholder, placeholder]
    assert placeholder.get_username() == PLACEHOLDER_NAME
    assert not placeholder.is_active
    assert not placeholder.has_usable_password()
    assert authenticate(username=PLACEHOLDER_NAME, password="") is None


def test_name_of_that_user_is_refused_by_forms() -> None:
    with pytest.raises(ValidationError):
        User.username_validator(PLACEHOLDER_NAME)
