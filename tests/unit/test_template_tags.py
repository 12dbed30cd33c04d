"""The template tags: what a page gets that wants to connect."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import jwt
import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.template import Context, Engine, RequestContext, Template
from django.test import Client, RequestFactory, override_settings
from django.urls import set_script_prefix

from realtime import hooks
from realtime.errors import InternalError
from realtime.hooks.registry import registry
from tests.server import SECRET

KEY = {"token_hmac_secret_key": SECRET}
NO_VIEWS = "tests.site.urls"
VIEWS = "tests.unit.auth.site_with_views"


@pytest.fixture(autouse=True)
def settings_of_the_site() -> Iterator[None]:
    """A key, the views, and what a test registers gone when it ends."""
    before = dict(registry.single)
    with override_settings(REALTIME=KEY, ROOT_URLCONF=VIEWS):
        yield
    registry.single.clear()
    registry.single.update(before)


def page(user: Any = None, **options: Any) -> HttpRequest:
    """A request for a page, by nobody if no user is given."""
    request = RequestFactory().get("/page", **options)
    request.user = user or AnonymousUser()
    return request


def render(request: HttpRequest | None, tag: str) -> str:
    template = Template(f"{{% load realtime %}}{{% {tag} %}}")
    return template.render(Context() if request is None else RequestContext(request))


class Script(HTMLParser):
    """What a browser reads of the tag's element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: dict[str, str | None] = {}
        self.content = ""
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes = dict(attrs)

    def handle_data(self, data: str) -> None:
        self.content += data


def config(request: HttpRequest, arguments: str = "") -> dict[str, Any]:
    script = Script(render(request, f"realtime_config {arguments}"))
    assert script.tags == ["script"]
    found: dict[str, Any] = json.loads(script.content)
    return found


def claims(token: str) -> dict[str, Any]:
    verified: dict[str, Any] = jwt.decode(token, SECRET, algorithms=["HS256"])
    return verified


# realtime_config


def test_config_is_data_that_browsers_do_not_run() -> None:
    script = Script(render(page(), "realtime_config"))
    assert script.attributes == {"id": "realtime-config", "type": "application/json"}


def test_config_has_endpoint_token_and_views() -> None:
    found = config(page(User(pk=17)))
    assert claims(found.pop("token"))["sub"] == "17"
    assert found == {
        "endpoint": "ws://testserver/connection/websocket",
        "refreshEndpoint": "/a/site/centrifuge/refresh",
        "subscribeEndpoint": "/a/site/centrifuge/subscribe",
    }


def test_config_has_no_views_where_the_site_has_none() -> None:
    with override_settings(ROOT_URLCONF=NO_VIEWS):
        assert config(page()).keys() == {"endpoint", "token"}


ENDPOINTS: dict[str, tuple[dict[str, Any], str]] = {
    "TLS": ({"secure": True}, "wss://testserver/connection/websocket"),
    "host": (
        {"headers": {"Host": "example.org:8000"}},
        "ws://example.org:8000/connection/websocket",
    ),
}


@pytest.mark.parametrize(("options", "expected"), ENDPOINTS.values(), ids=ENDPOINTS)
def test_endpoint_is_on_the_host_of_the_page(options: dict[str, Any], expected: str) -> None:
    with override_settings(ALLOWED_HOSTS=["testserver", "example.org"]):
        assert config(page(**options))["endpoint"] == expected


def test_endpoint_is_behind_a_proxy_that_ends_tls() -> None:
    with override_settings(
        SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"), USE_X_FORWARDED_HOST=True
    ):
        request = page(headers={"X-Forwarded-Proto": "https", "X-Forwarded-Host": "testserver"})
        assert config(request)["endpoint"] == "wss://testserver/connection/websocket"


def test_path_of_the_endpoint_is_the_option() -> None:
    with override_settings(REALTIME=KEY | {"websocket_handler_prefix": "/live"}):
        assert config(page())["endpoint"] == "ws://testserver/live"


def test_endpoint_is_below_the_prefix_of_the_site() -> None:
    set_script_prefix("/site/")
    try:
        found = config(page())
    finally:
        set_script_prefix("/")
    assert found["endpoint"] == "ws://testserver/site/connection/websocket"
    assert found["refreshEndpoint"] == "/site/a/site/centrifuge/refresh"


NOBODIES = [AnonymousUser(), User(pk=17, is_active=False)]


@pytest.mark.parametrize("user", NOBODIES, ids=["anonymous", "inactive"])
@pytest.mark.parametrize("client_anonymous", [False, True])
def test_token_of_nobody_is_empty(user: Any, client_anonymous: bool) -> None:
    """With `client_anonymous` clients need none."""
    with override_settings(REALTIME=KEY | {"client_anonymous": client_anonymous}):
        assert config(page(user))["token"] == ""


def test_token_of_nobody_needs_no_key_and_no_login_of_django() -> None:
    request = RequestFactory().get("/")
    with override_settings(REALTIME={}):
        assert config(request)["token"] == ""


def test_token_is_empty_where_the_login_session_is_the_credential() -> None:
    with override_settings(REALTIME={"session_authentication": True}):
        assert config(page(User(pk=17)))["token"] == ""


def test_missing_key_is_told() -> None:
    with override_settings(REALTIME={}), pytest.raises(ValueError, match="token_hmac_secret_key"):
        config(page(User(pk=17)))


def test_info_hook_says_what_others_see() -> None:
    @hooks.info
    def about(user: Any) -> dict[str, str]:
        return {"name": user.username}

    assert claims(config(page(User(pk=17, username="ann")))["token"])["info"] == {"name": "ann"}


def test_info_hook_may_be_a_coroutine() -> None:
    @hooks.info
    async def about(user: Any) -> hooks.Data:
        return hooks.Data(None)

    assert claims(config(page(User(pk=17)))["token"])["info"] is None


@pytest.mark.parametrize("error", [hooks.PermissionDenied(), hooks.Disconnect(4001, "x")], ids=str)
def test_user_whom_the_info_hook_refuses_gets_no_token(error: Exception) -> None:
    @hooks.info
    def refuse(user: Any) -> None:
        raise error.with_traceback(None)

    assert config(page(User(pk=17)))["token"] == ""


def test_info_hook_that_fails_is_logged_and_gives_no_page_without_a_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @hooks.info
    def fail(user: Any) -> None:
        raise LookupError("broken")

    with pytest.raises(InternalError):
        config(page(User(pk=17)))
    [record] = [r for r in caplog.records if r.name == "realtime.hooks"]
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError


def test_page_adds_values_of_its_own_and_replaces_ours() -> None:
    with override_settings(REALTIME={}):  # a token of the page's own needs no key
        found = config(page(User(pk=17)), 'token="own" refreshEndpoint="/token" channel="a"')
    assert (found["token"], found["refreshEndpoint"], found["channel"]) == ("own", "/token", "a")
    assert found["subscribeEndpoint"] == "/a/site/centrifuge/subscribe"


def test_values_cannot_leave_the_element() -> None:
    hostile = "</script><script>alert(1)</script><!--"
    template = Template("{% load realtime %}{% realtime_config channel=channel %}")
    text = template.render(RequestContext(page(), {"channel": hostile}))
    script = Script(text)
    assert script.tags == ["script"]
    assert json.loads(script.content)["channel"] == hostile
    assert re.findall(r"[<>]", script.content) == []


# realtime_token


def test_token_tag_writes_the_token_alone() -> None:
    assert claims(render(page(User(pk=17)), "realtime_token"))["sub"] == "17"
    assert render(page(), "realtime_token") == ""


def test_token_tag_writes_one_where_the_login_session_is_the_credential_too() -> None:
    """Who asks for a token wants one."""
    with override_settings(REALTIME=KEY | {"session_authentication": True}):
        assert claims(render(page(User(pk=17)), "realtime_token"))["sub"] == "17"


# the request


@pytest.mark.parametrize("tag", ["realtime_config", "realtime_token"])
def test_page_without_its_request_is_told_what_to_do(tag: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"render\(request"):
        render(None, tag)


@pytest.mark.parametrize("tag", ["realtime_config", "realtime_token"])
def test_request_is_found_in_an_ordinary_context_too(tag: str) -> None:
    engine = Engine(libraries={"realtime": "realtime.templatetags.realtime"})
    template = engine.from_string(f"{{% load realtime %}}{{% {tag} as found %}}{{{{ found }}}}")
    assert template.render(Context({"request": page(User(pk=17))}))


# the views, where a site has more middleware

LOGIN_REQUIRED = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
]


@pytest.mark.parametrize(
    ("view", "answer"), [("refresh", {"token": ""}), ("subscribe", {"channels": []})]
)
def test_view_answers_in_its_own_words_where_the_site_requires_logins_and_csrf_tokens(
    view: str, answer: dict[str, object]
) -> None:
    client = Client(enforce_csrf_checks=True, headers={"X-Requested-With": "XMLHttpRequest"})
    with override_settings(MIDDLEWARE=LOGIN_REQUIRED):
        response = client.post(
            f"/a/site/centrifuge/{view}",
            {"client": "C", "channels": ["$a"]},
            content_type="application/json",
        )
    assert (response.status_code, response.json()) == (200, answer)


# realtime_importmap


def import_map(tag: str, **context: Any) -> Script:
    template = Template(f"{{% load realtime %}}{{% {tag} %}}")
    return Script(template.render(Context(context)))


MODULES = {
    "realtime": "/static/realtime/client.js",
    "realtime/answers": "/static/realtime/answers.js",
    "realtime/inspect": "/static/realtime/inspect.js",
    "realtime/live": "/static/realtime/live.js",
    "realtime/maps": "/static/realtime/maps.js",
}


def test_import_map_names_the_modules() -> None:
    script = import_map("realtime_importmap")
    assert script.attributes == {"type": "importmap"}
    assert json.loads(script.content) == {"imports": MODULES}


def test_import_map_has_names_of_the_site() -> None:
    imports = {"vue": "/vue.js?a&b", "</script>": "/x"}
    script = import_map("realtime_importmap imports=imports", imports=imports)
    assert json.loads(script.content)["imports"] == MODULES | imports


@pytest.mark.parametrize(
    ("tag", "nonce"),
    [("realtime_importmap", "from Django"), ('realtime_importmap nonce="own"', "own")],
)
def test_import_map_has_the_nonce_of_the_page(tag: str, nonce: str) -> None:
    script = import_map(tag, csp_nonce="from Django")
    assert script.attributes == {"type": "importmap", "nonce": nonce}


# realtime_inspector

INSPECTOR = (
    '<script type="module" src="/static/realtime/inspect.js" data-realtime-inspector></script>'
)


def test_inspector_is_for_developers(settings: Any) -> None:
    assert render(page(), "realtime_inspector") == ""
    settings.DEBUG = True
    assert render(page(), "realtime_inspector") == INSPECTOR
    assert Script(render(page(), 'realtime_inspector nonce="a"')).attributes["nonce"] == "a"


@pytest.mark.django_db
@pytest.mark.parametrize(("of_user", "shown"), [("auth.view_user", True), ("auth.add_user", False)])
def test_inspector_is_for_users_with_the_permission(of_user: str, shown: bool) -> None:
    user = User.objects.create(username="Ann")
    user.user_permissions.add(Permission.objects.get(codename=of_user.partition(".")[2]))
    tag = 'realtime_inspector "auth.view_user"'
    assert render(page(user), tag) == (INSPECTOR if shown else "")
    assert render(page(user), "realtime_inspector") == ""
    assert render(page(), tag) == ""


@pytest.mark.django_db
def test_inspector_of_a_user_is_in_no_cache(caplog: pytest.LogCaptureFixture) -> None:
    user = User.objects.create(username="Ann", is_superuser=True)
    tags = (
        'load cache %}{% cache 60 inspector %}{% realtime_inspector "auth.view_user" %}{% endcache'
    )
    assert render(page(user), tags) == ""
    assert "within {% cache %}" in caplog.text
