"""What defeats an option: settings of the site, values that are wrong, an app that is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from django.test import override_settings

from tests.server import ROOT
from tests.unit.checks import system_checks
from tests.unit.checks.system_checks import SECURE, ids

REDIS = {"redis_url": "redis://h"}

SESSIONS = {"session_authentication": True}
STORES = "django.contrib.sessions.backends."
LOCAL = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SHARED = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "r"}}


@pytest.mark.parametrize(
    ("options", "settings", "expected"),
    [
        ({"token_lifetime": 1}, {}, ["W061"]),
        ({"token_lifetime": 29}, {}, ["W061"]),
        ({"token_lifetime": 30}, {}, []),
        (SESSIONS, {"SESSION_COOKIE_PATH": "/app"}, ["W062"]),
        (SESSIONS, {"SESSION_COOKIE_PATH": "/app/"}, ["W062"]),
        (SESSIONS, {"SESSION_COOKIE_PATH": "/conn"}, ["W062"]),
        (SESSIONS, {"SESSION_COOKIE_PATH": "/connection"}, []),
        (SESSIONS, {"SESSION_COOKIE_PATH": "/"}, []),
        (SESSIONS, {"SESSION_COOKIE_PATH": "/app", "FORCE_SCRIPT_NAME": "/app"}, []),
        ({**SESSIONS, "proxy_sets_root_path": True}, {"SESSION_COOKIE_PATH": "/app"}, []),
        ({}, {"SESSION_COOKIE_PATH": "/app"}, []),
        (
            {**SESSIONS, "websocket_handler_prefix": "/app/ws", "sockjs_disable": True},
            {"SESSION_COOKIE_PATH": "/app"},
            [],
        ),
        (
            {
                **SESSIONS,
                "websocket_handler_prefix": "/app/ws",
                "sockjs_disable": True,
                "sse": True,
            },
            {"SESSION_COOKIE_PATH": "/app"},
            ["W062"],
        ),
        *(
            (
                {**SESSIONS, **engine},
                {"SESSION_ENGINE": STORES + store, "CACHES": caches},
                ["W063"] if engine and caches is LOCAL else [],
            )
            for store in ("cache", "cached_db")
            for engine in ({}, REDIS)
            for caches in (LOCAL, SHARED)
        ),
        ({**SESSIONS, **REDIS}, {"SESSION_ENGINE": STORES + "db", "CACHES": LOCAL}, []),
        (REDIS, {"SESSION_ENGINE": STORES + "cache", "CACHES": LOCAL}, []),
        ({**SESSIONS, **REDIS}, {"SESSION_ENGINE": STORES + "signed_cookies"}, ["W064"]),
        (SESSIONS, {"SESSION_ENGINE": STORES + "signed_cookies"}, []),
        ({"address_connection_rate": "1/s"}, {"USE_X_FORWARDED_HOST": True}, ["W065"]),
        (
            {"address_connection_rate": "1/s"},
            {"SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https")},
            ["W065"],
        ),
        ({"address_connection_rate": "1/s", "proxy_sets_root_path": True}, {}, ["W065"]),
        (
            {"address_connection_rate": "1/s", "trusted_proxies": 1},
            {"USE_X_FORWARDED_HOST": True},
            [],
        ),
        ({"address_connection_rate": "1/s"}, {}, []),
    ],
)
def test_what_defeats_an_option_is_found(
    options: dict[str, Any], settings: dict[str, Any], expected: list[str]
) -> None:
    with override_settings(**settings):
        messages = ids(system_checks.found(**SECURE | options))
    of_the_site = [f"realtime.W06{number}" for number in range(1, 6)]
    assert [each for each in of_the_site if each in messages] == [
        f"realtime.{each}" for each in expected
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"token_hmac_previous_secret_key_valid_until": 1_900_000_000_000}, ["E060"]),
        ({"token_hmac_previous_secret_key_valid_until": 1_900_000_000}, []),
        (
            {
                "subscription_token_hmac_secret_key": "k" * 32,
                "subscription_token_hmac_previous_secret_key_valid_until": 10**12,
            },
            ["E060"],
        ),
        ({"websocket_handler_prefix": "/c", "sockjs_handler_prefix": "/c"}, ["E026"]),
        ({"sockjs_handler_prefix": "/c/"}, ["E026"]),
        ({"health_handler_prefix": "/"}, ["E026"]),
        ({"websocket_handler_prefix": "/c/", "metrics_handler_prefix": "/m/"}, []),
        (
            {
                "websocket_handler_prefix": "/c",
                "sockjs_handler_prefix": "/c",
                "sockjs_disable": True,
            },
            [],
        ),
        ({"health": True, "websocket_handler_prefix": "/realtime/live"}, ["E026"]),
        (
            {"health": True, "metrics_key": "k" * 16, "metrics_handler_prefix": "/realtime/ready"},
            ["E026"],
        ),
        ({"metrics_handler_prefix": "/connection/websocket"}, []),
        ({"namespace": []}, ["E002"]),
    ],
)
def test_wrong_values_are_errors(options: dict[str, Any], expected: list[str]) -> None:
    previous = {f"{each}_hmac_previous_secret_key": "p" * 32 for each in ("token",)}
    messages = system_checks.found(**SECURE | previous | options)
    errors = [message for message in messages if message.is_serious()]
    assert ids(errors) == [f"realtime.{each}" for each in expected]
    assert "namespace" not in options or errors[0].hint == "Did you mean namespaces?"


WITHOUT_SERVICE = """
import json, sys
import django
from django.conf import settings
from django.core.checks import run_checks
settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", *sys.argv[1:]],
)
django.setup()
print(json.dumps([message.msg for message in run_checks() if message.id == "realtime.E061"]))
"""

PARTS = [
    *("api", "admin_panel", "realtime.live", "realtime.online", "realtime.online.seen"),
    "realtime.pending",
]


def test_parts_without_the_service_are_found() -> None:
    def told(*apps: str) -> list[str]:
        finished = subprocess.run(
            [sys.executable, "-c", WITHOUT_SERVICE, *apps],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert finished.returncode == 0, finished.stderr
        return list(json.loads(finished.stdout))

    (message,) = told(*PARTS)

    assert message.partition(" cannot work without the service")[0].split(" and ") == PARTS
    assert told("realtime", *PARTS) == []
