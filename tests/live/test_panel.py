"""The publish page of the admin in a served site: who may, what arrives, what is logged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from html import unescape

import httpx
import pytest

from realtime.options_reader import load
from realtime.tokens import issue
from tests.protocol_client import ProtocolClient, open_client
from tests.ready_site import ReadySite, manage

PAGE = "/admin/realtime_admin/publication/"
PASSWORD = "long enough for a test"

USERS = f"""
from django.contrib.auth.models import Permission, User
for name, is_staff in (("allowed", True), ("not-allowed", True), ("visitor", False)):
    User.objects.create_user(name, password={PASSWORD!r}, is_staff=is_staff)
permission = Permission.objects.get(content_type__app_label="realtime_admin", codename="publish")
for name in ("allowed", "visitor"):
    User.objects.get(username=name).user_permissions.add(permission)
"""
"""Staff with the permission and without, and someone with the permission who is no staff."""

SignIn = Callable[[str], httpx.Client]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadySite]:
    """The ready site, with some users."""
    site = ReadySite(tmp_path_factory.mktemp("site"))
    manage(site.directory, "shell", "--verbosity", "0", "-c", USERS)
    yield site
    site.stop()


@pytest.fixture
def sign_in(site: ReadySite) -> Iterator[SignIn]:
    """A browser without JavaScript in which this user is signed in."""
    browsers: list[httpx.Client] = []

    def sign_in(user: str) -> httpx.Client:
        browser = httpx.Client(base_url=site.address, follow_redirects=True)
        browsers.append(browser)
        browser.get("/admin/login/")
        password = site.password if user == "operator" else PASSWORD
        send(browser, "/admin/login/", username=user, password=password)
        assert "sessionid" in browser.cookies or user == "visitor"
        return browser

    yield sign_in
    for browser in browsers:
        browser.close()


def send(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form, as its page would."""
    fields["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
    return browser.post(path, data=fields)


@pytest.fixture
async def subscriber(site: ReadySite) -> AsyncIterator[ProtocolClient]:
    """A client to subscribe with."""
    config = load({"token_hmac_secret_key": site.secret("token_hmac_secret_key")})
    async with open_client(site.socket, token=issue.connection_token(config, "17")) as client:
        yield client


@pytest.mark.parametrize(
    "user", ["operator", "allowed"], ids=["superuser", "staff with permission"]
)
async def test_publication_reaches_a_subscriber(
    sign_in: SignIn, subscriber: ProtocolClient, unique: str, user: str
) -> None:
    await subscriber.result("subscribe", {"channel": unique})

    response = send(sign_in(user), PAGE, channel=unique, data='{"text": "hi"}')

    assert await subscriber.publication() == {"data": {"text": "hi"}}
    assert f"Published into {unique}." in response.text


async def test_data_arrive_as_they_were_typed(
    sign_in: SignIn, subscriber: ProtocolClient, unique: str
) -> None:
    await subscriber.result("subscribe", {"channel": unique})

    send(sign_in("operator"), PAGE, channel=unique, data='{"b":1.0,"a":12345678901234567890123}')

    await subscriber.publication()
    assert '{"b":1.0,"a":12345678901234567890123}' in str(subscriber.frames[-1])


def test_publication_is_an_entry_of_the_admin_log(sign_in: SignIn, unique: str) -> None:
    browser = sign_in("allowed")

    send(browser, PAGE, channel=unique, data=f'["{unique}-data"]')

    index = browser.get("/admin/").text
    assert unique in index.partition("Recent actions")[2]
    page = browser.get(PAGE)
    row = unescape(page.text.partition('id="recent"')[2].partition("</tbody>")[0])
    assert f'["{unique}-data"]' in row
    assert "allowed" in row


LIKE_DJANGO_S_OWN = ["[1, 2]", '[{"added": {"name": "user", "object": "root"}}]', "[]"]
"""JSON that begins as the change messages do that Django writes itself and turns into words."""


@pytest.mark.parametrize("data", LIKE_DJANGO_S_OWN)
def test_entry_of_the_log_shows_the_data_and_reads_as_nothing_else(
    site: ReadySite, sign_in: SignIn, unique: str, data: str
) -> None:
    browser = sign_in("operator")

    send(browser, PAGE, channel=unique, data=data)

    message = manage(
        site.directory,
        *("shell", "--verbosity", "0", "-c"),
        "from django.contrib.admin.models import LogEntry;"
        f"print(LogEntry.objects.get(object_repr={unique!r}).get_change_message())",
    ).stdout
    assert data in message
    assert "Added" not in message
    rows = unescape(browser.get(PAGE).text.partition('id="recent"')[2].partition("</tbody>")[0])
    [row] = [row for row in rows.split("</tr>") if unique in row]
    assert f"<code>{data}</code>" in row


def test_unknown_namespace_is_an_error_of_the_channel_field(sign_in: SignIn, unique: str) -> None:
    browser = sign_in("operator")

    response = send(browser, PAGE, channel=f"nope-{unique}:a", data='"kept"')

    assert response.status_code == 200
    field = response.text.partition('field-channel errors"')[2].partition("</ul>")[0]
    assert "Error 102: namespace not found." in field
    assert "&quot;kept&quot;" in response.text
    assert f"nope-{unique}:a" not in browser.get("/admin/").text, "it was logged"


def test_page_keeps_the_channel_for_the_next_publication(sign_in: SignIn, unique: str) -> None:
    response = send(sign_in("operator"), PAGE, channel=unique, data="1")

    assert response.history[0].status_code == 302
    field = response.text.partition('name="channel"')[2].partition("</textarea>")[0]
    assert field.partition(">")[2].strip() == unique


def test_anonymous_visitor_is_sent_to_the_login(site: ReadySite) -> None:
    response = httpx.get(site.address + PAGE)

    assert response.status_code == 302
    assert response.headers["Location"] == f"/admin/login/?next={PAGE}"


def test_user_who_is_no_staff_is_sent_to_the_login(sign_in: SignIn) -> None:
    response = sign_in("visitor").get(PAGE)

    assert response.url.path == "/admin/login/"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_staff_without_the_permission_get_403(sign_in: SignIn, unique: str, method: str) -> None:
    browser = sign_in("not-allowed")

    if method == "GET":
        response = browser.get(PAGE)
    else:
        response = send(browser, PAGE, channel=unique, data="1")

    assert response.status_code == 403


@pytest.mark.parametrize(("user", "shown"), [("allowed", True), ("not-allowed", False)])
def test_index_shows_the_page_to_those_who_may_use_it(
    sign_in: SignIn, user: str, shown: bool
) -> None:
    assert (f'href="{PAGE}"' in sign_in(user).get("/admin/").text) is shown


def test_form_of_another_site_is_refused(sign_in: SignIn, unique: str) -> None:
    response = sign_in("operator").post(PAGE, data={"channel": unique, "data": "1"})

    assert response.status_code == 403
