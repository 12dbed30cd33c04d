"""The doctor at running services: healthy ones, and everything that usually goes wrong."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from pytest_django import Settings

import realtime
from tests.live.configurations import Serve
from tests.live.site_process import site as site_process
from tests.live.tools.command import (
    KEYS,
    OPTIONS,
    answering,
    call,
    examine_alone,
    findings,
    front_proxy,
    run,
    statuses,
    visit,
    without_header,
)
from tests.ports import free_port, refusing_port
from tests.server import API_KEY, SECRET, Server

pytestmark = pytest.mark.django_db  # the doctor counts pending rows

NETWORK = (
    "service",
    "ready",
    "upgrade",
    "origin",
    "connect",
    "close reason",
    "api",
    "server",
    "clock",
)


# healthy services


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_healthy_service_passes(serve: Serve, tmp_path: Path, server: str) -> None:
    found = examine_alone(tmp_path, OPTIONS, "--url", serve(server=server, **OPTIONS).address)
    assert set(statuses(found, *NETWORK, "processes", "version", "configuration")) == {"ok"}
    assert found["server"]["found"].startswith(server)


def test_people_read_a_line_for_each_check(
    serve: Serve, tmp_path: Path, migrated: Mapping[str, str]
) -> None:
    address = serve(**OPTIONS).address
    finished = run(tmp_path, OPTIONS, "doctor", "--url", address, environment=migrated)
    assert finished.returncode == 0, finished.stdout
    assert SECRET not in finished.stdout + finished.stderr
    assert API_KEY not in finished.stdout + finished.stderr
    lines = finished.stdout.splitlines()
    assert "ok    close reason: the disconnect advice arrives" in lines
    pings = next(number for number, line in enumerate(lines) if line.startswith("skip  pings: "))
    assert "proxy_read_timeout" in lines[pings + 1]


def test_service_of_another_version_is_noticed(
    own_options: None, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = serve(**OPTIONS).address
    running = realtime.__version__
    monkeypatch.setattr(realtime, "__version__", f"{running}+20261123183531.g1a2b3c4d5")
    found = visit(address)["version"]
    assert found["status"] == "warn"
    assert found["found"].startswith(f"the service has version {running}, here it is {running}+2")


# on the way to the service


def test_service_that_is_not_there_fails_and_ends_the_visit(own_options: None) -> None:
    found = visit(f"http://127.0.0.1:{refusing_port()}")
    assert found["service"]["status"] == "fail"
    assert "nothing listens there" in found["service"]["found"]
    assert "upgrade" not in found


def test_service_that_does_not_answer_fails_in_time(own_options: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = visit(f"http://127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.2")
    assert found["service"]["status"] == "fail"
    assert "no answer within 0.2 s" in found["service"]["found"]


def test_proxy_that_drops_the_upgrade_is_named(own_options: None, serve: Serve) -> None:
    with front_proxy(
        serve(**OPTIONS).port, change=without_header("Upgrade", "Connection")
    ) as proxy:
        found = visit(proxy.address)

    assert found["upgrade"]["status"] == "fail"
    assert "answers 400" in found["upgrade"]["found"]
    assert "proxy_set_header Upgrade" in found["upgrade"]["advice"]
    assert statuses(found, "origin", "connect", "close reason") == ["skip"] * 3
    assert found["api"]["status"] == "ok"


UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade"}
ANSWERS: list[tuple[int, dict[str, str], str, str]] = [
    (200, {}, "upgrade", "Something else answers"),
    (400, {}, "upgrade", "ALLOWED_HOSTS"),
    (401, {}, "upgrade", "asks for a password"),
    (403, {}, "upgrade", "the path is not that of the service"),
    (404, {}, "upgrade", "get_asgi_application"),
    (500, {}, "upgrade", "its log says why"),
    (502, {}, "upgrade", "does not reach the server"),
    (503, {}, "upgrade", "could not start"),
    (504, {}, "upgrade", "no answer from the server"),
    (418, {}, "upgrade", "logs of the server and of the reverse proxy"),
    (200, UPGRADE, "upgrade", "a wrong one"),
    (301, {"Location": "https://example.org/"}, "service", "redirects to https://example.org/"),
    *(
        (302, {"Location": place}, "service", "redirects to")
        for place in ("http://[", "//", "javascript:alert(1)", "\x1b[31m", "é")
    ),
]
"""Status and headers, the check that fails, and words of what it says."""


@pytest.mark.parametrize(("status", "headers", "check", "words"), ANSWERS)
def test_answer_that_is_not_one_of_the_service_is_explained(
    own_options: None, status: int, headers: dict[str, str], check: str, words: str
) -> None:
    with answering(status, headers, upgrade=101 if headers == UPGRADE else None) as url:
        found = visit(url)[check]
    assert found["status"] == "fail"
    assert words in found["found"] + found["advice"]
    assert headers or f"answers {status} " in found["found"]


def test_without_the_package_websockets_the_rest_is_looked_at(
    serve: Serve, tmp_path: Path, migrated: Mapping[str, str]
) -> None:
    finished = run(
        tmp_path,
        OPTIONS,
        *("doctor", "--json", "--url", serve(**OPTIONS).address),
        settings="tests.site.settings_without_websockets",
        environment=migrated,
    )

    found = findings(finished.stdout)
    assert finished.returncode == 0
    assert found["upgrade"]["status"] == "warn"
    assert "django-realtime-messaging[doctor]" in found["upgrade"]["advice"]
    assert statuses(found, "origin", "connect", "close reason") == ["skip"] * 3
    assert statuses(found, "service", "api", "server") == ["ok"] * 3


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_asgi_module_that_does_not_wrap_the_site_is_named(
    own_options: None, own_server: Callable[..., Server], server: str
) -> None:
    url = own_server(server=server, application="tests.site.asgi_unwrapped:application").address
    found = visit(url)
    assert found["upgrade"]["status"] == "fail"
    assert "asgi.py" in found["upgrade"]["advice"]
    assert found["api"]["status"] == "fail"
    assert "serves no clients" in found["api"]["advice"]


def test_wsgi_server_is_named(own_options: None) -> None:
    port = free_port()
    with site_process(
        ["-m", "django", "runserver", f"127.0.0.1:{port}", "--noreload"],
        rf"Starting development server at http://127\.0\.0\.1:({port})/",
        {
            "DJANGO_SETTINGS_MODULE": "tests.site.settings_without_daphne",
            "SERVICE_API_KEY": API_KEY,
        },
    ) as site:
        found = visit(site.address)

    assert found["upgrade"]["status"] == "fail"
    assert "(not WSGI)" in found["upgrade"]["advice"]
    assert "WSGI?" in found["api"]["advice"]


# clients


def test_origin_of_the_site_that_is_refused_is_named(
    settings: Settings, own_server: Callable[..., Server]
) -> None:
    settings.REALTIME = {**KEYS, "allowed_origins": ["https://example.org"]}
    url = own_server(allowed_origins=["https://example.org"]).address
    found = visit(url)
    assert statuses(found, "upgrade", "origin") == ["ok", "fail"]
    assert f"'{url}' to allowed_origins" in found["origin"]["advice"]


def test_origin_that_gets_in_against_the_options_is_named(own_options: None, serve: Serve) -> None:
    with front_proxy(serve(**OPTIONS).port, change=without_header("Origin")) as proxy:
        found = visit(proxy.address)
    assert found["origin"]["status"] == "warn"
    assert "remove the header Origin" in found["origin"]["advice"]


def test_service_with_another_token_key_is_named(settings: Settings, serve: Serve) -> None:
    settings.REALTIME = {**KEYS, "token_hmac_secret_key": "another one, and long enough, too"}
    found = visit(serve(**OPTIONS).address)
    assert found["connect"]["status"] == "fail"
    assert "another token_hmac_secret_key" in found["connect"]["advice"]


def test_site_that_makes_no_tokens_connects_nobody(settings: Settings, serve: Serve) -> None:
    settings.REALTIME = {"api_key": API_KEY, "client_anonymous": True}
    found = visit(serve(**OPTIONS).address)
    assert statuses(found, "upgrade", "connect", "close reason") == ["ok", "skip", "ok"]


def test_close_frame_without_advice_is_noticed(
    own_options: None, own_server: Callable[..., Server]
) -> None:
    """As with a daphne that cannot take our protocol."""
    url = own_server(application="tests.site.asgi_plain_daphne:application").address
    found = visit(url)
    assert found["close reason"]["status"] == "warn"
    assert "daphne" in found["close reason"]["advice"]


@pytest.mark.parametrize(("ahead", "status"), [(20, "warn"), (-20, "warn"), (90, "fail")], ids=str)
def test_clock_of_the_service_that_goes_wrong_is_noticed(
    own_options: None, own_server: Callable[..., Server], ahead: int, status: str
) -> None:
    server = own_server(
        application="tests.site.asgi_other_clock:application",
        environment={"TEST_CLOCK_AHEAD": str(ahead)},
    )

    found = visit(server.address)

    direction = "ahead of" if ahead > 0 else "behind"
    told = re.search(rf"is (\d+) s {direction} the one here", found["clock"]["found"])
    assert found["clock"]["status"] == status
    assert told
    assert abs(int(told[1]) - abs(ahead)) <= 1  # a token tells whole seconds
    assert "NTP" in found["clock"]["advice"]


def test_clock_that_makes_new_tokens_expired_is_named(
    own_options: None, own_server: Callable[..., Server]
) -> None:
    server = own_server(
        application="tests.site.asgi_other_clock:application",
        environment={"TEST_CLOCK_AHEAD": "3600"},
    )
    found = visit(server.address)
    assert found["connect"]["status"] == "fail"
    assert "error 109" in found["connect"]["found"]
    assert "clock of the service is ahead" in found["connect"]["advice"]


# arguments


def test_without_a_url_the_service_is_said_to_be_left_out(own_options: None) -> None:
    found = findings(call("doctor", "--json"))
    assert found["service"]["status"] == "skip"
    assert "--url" in found["service"]["advice"]


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "soon"])
def test_timeout_that_is_none_is_refused(own_options: None, timeout: str) -> None:
    with pytest.raises(CommandError, match="invalid number of seconds"):
        call("doctor", f"--timeout={timeout}")


def test_mistakes_in_the_options_end_the_visit(tmp_path: Path) -> None:
    finished = run(tmp_path, {"presense": True}, "doctor", "--json", "--url", "http://127.0.0.1:9")
    assert finished.returncode == 1
    [finding] = json.loads(finished.stdout)["checks"]
    assert (finding["check"], finding["status"]) == ("configuration", "fail")
    assert "realtime.E002" in finding["found"]
