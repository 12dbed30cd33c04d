"""Hosts: what an entry means, and that no text contains a password."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from realtime.redis.hosts import Host

PASSWORD = "pass-word-1"


@pytest.mark.parametrize(
    ("entry", "label"),
    [
        pytest.param({"address": "redis://h"}, "redis://h:6379/0", id="url"),
        pytest.param({"address": "redis://h:1/2"}, "redis://h:1/2", id="port-and-db"),
        pytest.param({"address": "redis://h:1?db=3"}, "redis://h:1/3", id="db-in-query"),
        pytest.param({"address": "redis://u:p@h:1/2"}, "redis://h:1/2", id="credentials"),
        pytest.param({"address": "rediss://h"}, "rediss://h:6379/0", id="tls-url"),
        pytest.param({"address": "unix:///r.sock?db=1"}, "unix:///r.sock?db=1", id="unix-url"),
        pytest.param({"address": "redis://[::1]:7"}, "redis://[::1]:7/0", id="ipv6"),
        pytest.param({"address": "redis://h", "db": 4}, "redis://h:6379/4", id="url-and-option"),
        pytest.param({"address": "redis://h/1", "db": 4}, "redis://h:6379/1", id="url-wins"),
        pytest.param({"host": "h", "port": 1, "db": 2}, "redis://h:1/2", id="host"),
        pytest.param({"host": "h", "port": "1", "db": "2"}, "redis://h:1/2", id="strings"),
        pytest.param({"host": "h", "ssl": True}, "rediss://h:6379/0", id="tls-option"),
        pytest.param({}, "redis://localhost:6379/0", id="empty"),
        pytest.param({"path": "/r.sock"}, "unix:///r.sock?db=0", id="path"),
        pytest.param(
            {"sentinels": [("a", 1), ("b", 2)], "master_name": "m", "db": 3, "password": "x"},
            "sentinel://a:1,b:2/m/3",
            id="sentinel",
        ),
    ],
)
def test_label_names_the_place_without_credentials(entry: dict[str, Any], label: str) -> None:
    assert Host(entry).label == label


NAME = ("CLIENT", "SETNAME", "realtime")


@pytest.mark.parametrize(
    ("entry", "commands"),
    [
        pytest.param({"host": "h"}, [NAME], id="nothing"),
        pytest.param({"address": "redis://:p%40@h"}, [("AUTH", "p@"), NAME], id="password"),
        pytest.param({"address": "redis://u:p@h"}, [("AUTH", "u", "p"), NAME], id="user"),
        pytest.param({"host": "h", "username": "u"}, [("AUTH", "u", ""), NAME], id="no-password"),
        pytest.param({"host": "h", "password": b"p"}, [("AUTH", "p"), NAME], id="bytes"),
        pytest.param({"host": "h", "db": 2}, [("SELECT", "2"), NAME], id="db"),
        pytest.param(
            {"path": "/s", "password": "p", "db": 2},
            [("AUTH", "p"), ("SELECT", "2"), NAME],
            id="password-before-db",
        ),
    ],
)
def test_handshake_signs_in_and_selects(
    entry: dict[str, Any], commands: list[tuple[str, ...]]
) -> None:
    assert Host(entry).handshake() == commands


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"address": "http://h"}, id="scheme"),
        pytest.param({"address": "h:6379"}, id="no-scheme"),
        pytest.param({"address": f"redis://:{PASSWORD}/x@h"}, id="password-with-slash"),
        pytest.param({"address": "unix://"}, id="unix-without-path"),
        pytest.param({"address": "redis://h", "pasword": PASSWORD}, id="unknown-option"),
        pytest.param({"address": f"redis://h?pasword={PASSWORD}"}, id="unknown-in-url"),
        pytest.param({"address": f"redis://:{PASSWORD}@h:port"}, id="port"),
        pytest.param({"host": "h", "ssl": True, "ssl_validate_ocsp": True}, id="unsupported-tls"),
        pytest.param({"host": "h", "ssl": True, "ssl_cert_reqs": "maybe"}, id="verify"),
        pytest.param({"host": "h", "ssl": True, "ssl_min_version": 12}, id="tls-version"),
        pytest.param({"host": "h", "port": 65536}, id="port-too-large"),
        pytest.param({"sentinels": [("a", -1)], "master_name": "m"}, id="port-of-sentinel"),
        pytest.param({"sentinels": [("a", 1)], "password": PASSWORD}, id="no-master-name"),
        pytest.param({"master_name": "m", "password": PASSWORD}, id="no-sentinels"),
    ],
)
def test_wrong_entry_is_refused_without_its_password(entry: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Redis") as caught:
        Host(entry)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None


def test_exception_names_host_and_reason_and_hides_passwords() -> None:
    host = Host(
        {
            "sentinels": [("a", 1)],
            "master_name": "m",
            "password": PASSWORD,
            "sentinel_kwargs": {"password": "pass-word-2"},
        }
    )

    error = host.unavailable(f"unknown command, args: {PASSWORD} pass-word-2")

    assert str(error) == "sentinel://a:1/m/0: unknown command, args: *** ***"


@pytest.mark.parametrize(
    ("options", "verify", "check_hostname"),
    [
        pytest.param({}, ssl.CERT_REQUIRED, True, id="default"),
        pytest.param({"ssl_cert_reqs": "none"}, ssl.CERT_NONE, False, id="none"),
        pytest.param({"ssl_cert_reqs": None}, ssl.CERT_NONE, False, id="null"),
        pytest.param({"ssl_cert_reqs": ssl.CERT_OPTIONAL}, ssl.CERT_OPTIONAL, True, id="constant"),
        pytest.param({"ssl_check_hostname": False}, ssl.CERT_REQUIRED, False, id="any-name"),
        pytest.param({"ssl_check_hostname": "false"}, ssl.CERT_REQUIRED, False, id="as-text"),
    ],
)
def test_certificates_are_verified_unless_configured_otherwise(
    options: dict[str, Any], verify: ssl.VerifyMode, check_hostname: bool
) -> None:
    context = Host({"host": "h", "ssl": True, **options}).tls_context
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (verify, check_hostname)


def test_options_of_redis_py_without_effect_are_accepted() -> None:
    host = Host({"address": "redis://h", "socket_timeout": 3, "health_check_interval": 30})
    assert host.label == "redis://h:6379/0"
