"""The functions of `realtime.tokens` sign tokens with the configuration in force."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jwt
import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import override_settings

from realtime import payload
from realtime.config.reader import InvalidOptions
from realtime.tokens import connection_token, subscription_token
from tests.server import ROOT, SECRET

HOUR = 3600


@pytest.fixture(autouse=True)
def key() -> Iterator[None]:
    """Put a key into the configuration in force."""
    with override_settings(REALTIME={"token_hmac_secret_key": SECRET}):
        yield


def claims(token: str) -> dict[str, Any]:
    """Return the claims of a token that the key in force signed and that is valid now."""
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    verified: dict[str, Any] = jwt.decode(token, SECRET, algorithms=["HS256"])
    return verified


USERS: dict[str, tuple[Any, str]] = {
    "inactive user": (User(pk=17, is_active=False), "17"),
    "anonymous user": (AnonymousUser(), ""),
    "text": ("ann", "ann"),
}


@pytest.mark.parametrize(("user", "expected"), USERS.values(), ids=USERS)
def test_user_or_id_is_who_the_token_is_for(user: Any, expected: str) -> None:
    assert claims(connection_token(user))["sub"] == expected


MAKERS: list[Callable[..., str]] = [
    lambda **arguments: connection_token("17", **arguments),
    lambda **arguments: subscription_token("C", "$a", **arguments),
]


def both(function: Callable[..., None]) -> Callable[..., None]:
    """Run a test with each of the two functions."""
    mark = pytest.mark.parametrize("make", MAKERS, ids=["connection", "subscription"])
    decorated: Callable[..., None] = mark(function)
    return decorated


@both
def test_token_is_valid_for_an_hour(make: Callable[..., str]) -> None:
    before = int(time.time())
    assert before + HOUR <= claims(make())["exp"] <= time.time() + HOUR


@both
def test_ttl_is_in_seconds(make: Callable[..., str]) -> None:
    before = int(time.time())
    assert before + 90 <= claims(make(ttl=90))["exp"] <= time.time() + 90


@both
def test_token_without_ttl_never_expires(make: Callable[..., str]) -> None:
    assert "exp" not in claims(make(ttl=None))


INFO: dict[str, tuple[object, object]] = {
    "object": ({"a": [1, None, "é"]}, {"a": [1, None, "é"]}),
    "false": (False, False),
    "ready made": (payload.check(b' {"b": 1.50, "a": 2}'), {"b": 1.5, "a": 2}),
}


@both
@pytest.mark.parametrize(("info", "expected"), INFO.values(), ids=INFO)
def test_info_is_a_claim(make: Callable[..., str], info: object, expected: object) -> None:
    assert claims(make(info=info))["info"] == expected


@both
def test_token_without_info_has_no_such_claim(make: Callable[..., str]) -> None:
    assert "info" not in claims(make())


def test_channels_are_server_side_subscriptions() -> None:
    assert claims(connection_token("17", channels=(c for c in "ab")))["channels"] == ["a", "b"]
    assert "channels" not in claims(connection_token("17"))


@pytest.mark.parametrize("channels", ["news", [1], ["a", None], [b"a"]], ids=repr)
def test_channels_must_be_a_list_of_names(channels: Any) -> None:
    with pytest.raises(TypeError, match="channel"):
        connection_token("17", channels=channels)


def test_subscription_token_is_for_one_client_and_one_channel() -> None:
    token = subscription_token("C", "$a", ttl=None)
    assert claims(token) == {"client": "C", "channel": "$a"}


@both
def test_no_token_is_made_without_a_key(make: Callable[..., str]) -> None:
    with override_settings(REALTIME={}), pytest.raises(ValueError, match="token_hmac_secret_key"):
        make()


@both
def test_mistakes_in_the_options_are_raised(make: Callable[..., str]) -> None:
    with override_settings(REALTIME={"presence": "yes"}), pytest.raises(InvalidOptions):
        make()


@both
def test_key_is_the_one_in_force_at_the_call(make: Callable[..., str]) -> None:
    with override_settings(REALTIME={"token_hmac_secret_key": "k" * 32}):
        token = make()
    assert jwt.decode(token, "k" * 32, algorithms=["HS256"])


WITHOUT_SETTINGS = """
import json, sys
import realtime.tokens, realtime.auth.issue
from realtime.config.reader import load
from django.conf import settings
config = load({"token_hmac_secret_key": sys.argv[1]})
print(json.dumps([realtime.auth.issue.connection_token(config, "17"), settings.configured]))
"""


def test_tokens_can_be_made_and_imported_without_settings_of_django() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}

    output = subprocess.run(
        [sys.executable, "-c", WITHOUT_SETTINGS, SECRET],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    token, configured = json.loads(output)
    assert claims(token) == {"sub": "17"}
    assert configured is False
