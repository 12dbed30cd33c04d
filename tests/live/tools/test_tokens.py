"""gentoken and checktoken: tokens that the service takes, and what is said of those it refuses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.management.base import CommandError
from pytest_django import Settings

from tests.live.configurations import Connect, Serve
from tests.live.tools.command import call, call_json, run
from tests.ports import refusing_port
from tests.server import SECRET
from tests.unit.auth.jwt_parts import rsa_key

OPTIONS: dict[str, Any] = {"presence": True}
RSA_KEY = rsa_key()


@pytest.fixture(autouse=True)
def keys(settings: Settings) -> None:
    """The key of the servers."""
    settings.REALTIME = {"token_hmac_secret_key": SECRET}


def claims(token: str) -> dict[str, Any]:
    """The claims of a token that was signed with the configured key."""
    decoded: dict[str, Any] = jwt.decode(token, SECRET, algorithms=["HS256"])
    return decoded


def signed(key: str = SECRET, algorithm: str = "HS256", **content: Any) -> str:
    return jwt.encode(content, key, algorithm)


# gentoken


async def test_generated_token_connects_its_user_with_info_and_channels(
    serve: Serve, connect: Connect, unique: str
) -> None:
    server = serve(**OPTIONS)
    token = call("gentoken", unique, "--info", '{"name": "Ann"}', "--channel", f"news{unique}")
    client = await connect(server, token=token)
    present = server.api("presence", channel=f"news{unique}")["result"]["presence"]
    assert present == {
        client.client: {"user": unique, "client": client.client, "conn_info": {"name": "Ann"}}
    }


async def test_generated_subscription_token_opens_a_private_channel(
    serve: Serve, connect: Connect, unique: str
) -> None:
    client = await connect(serve(**OPTIONS))
    token = call("gentoken", "--client", client.client, "--channel", f"${unique}", "--ttl", "1h")
    result = await client.result("subscribe", {"channel": f"${unique}", "token": token})
    assert result["expires"] is True
    assert 3590 <= result["ttl"] <= 3600


TIMES = {"90": 90, "90s": 90, "15m": 900, "12h": 43200, "2d": 172800, "": 7 * 86400}


@pytest.mark.parametrize(("ttl", "seconds"), TIMES.items())
def test_time_to_live_has_units_and_is_seven_days_otherwise(ttl: str, seconds: int) -> None:
    before = int(time.time())
    expires_at = call_json("gentoken", "17", *(["--ttl", ttl] * bool(ttl)))["expires_at"]
    assert before + seconds <= expires_at <= time.time() + seconds


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["17"], {"sub": "17"}),
        (["17", "--channel", "a", "--channel", "b"], {"sub": "17", "channels": ["a", "b"]}),
        ([""], {"sub": ""}),
        (["17", "--channel", "$a", "--subscription"], {"sub": "17", "channel": "$a"}),
    ],
    ids=str,
)
def test_token_has_the_claims_of_its_arguments(
    arguments: list[str], expected: dict[str, Any]
) -> None:
    assert claims(call("gentoken", *arguments, "--ttl", "never")) == expected


def test_json_has_the_token_and_its_expiry() -> None:
    value = call_json("gentoken", "17")
    assert value == {"token": value["token"], "expires_at": claims(value["token"])["exp"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["17", "--ttl", "soon"], "invalid time to live value: 'soon'"),
        (["17", "--ttl", "0"], "invalid time to live value: '0'"),
        (["17", "--info", "{name}"], "--info is not JSON"),
        ([], "Give a user"),
        (["17", "--client", "c", "--channel", "$a"], "no user"),
        (["--client", "c"], "one --channel"),
        (["--client", "c", "--channel", "$a", "--channel", "$b"], "one --channel"),
        (["--client", "", "--channel", "$a"], "needs --client"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments_are_said(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call("gentoken", *arguments)


def test_without_a_key_the_way_to_one_is_said(settings: Settings) -> None:
    settings.REALTIME = {}
    with pytest.raises(CommandError, match=r"token_hmac_secret_key.*genconfig"):
        call("gentoken", "17")


def test_subscription_token_of_a_user_is_checked() -> None:
    text = call("checktoken", signed(sub="17", channel="$a"))
    assert text.startswith("A valid subscription token (HS256).\nuser:       17\nchannel:")
    assert "client" not in text


# checktoken


def test_valid_connection_token_is_told_with_who_and_until_when() -> None:
    expires_at = int(time.time()) + 3600
    token = signed(sub="17", exp=expires_at, info={"name": "Ann"}, channels=["news"])

    assert call_json("checktoken", token) == {
        "valid": True,
        "kind": "connection",
        "user": "17",
        "info": {"name": "Ann"},
        "channels": ["news"],
        "expires_at": expires_at,
        "connection_expires_at": expires_at,
        "algorithm": "HS256",
    }


def test_valid_subscription_token_is_told_with_client_and_channel() -> None:
    expires_at = int(time.time()) + 3600
    token = signed(client="c", channel="$a", exp=expires_at, eto=True)

    assert call_json("checktoken", token) == {
        "valid": True,
        "kind": "subscription",
        "client": "c",
        "channel": "$a",
        "info": None,
        "expires_at": expires_at,
        "subscription_expires_at": None,
        "algorithm": "HS256",
    }


def test_people_are_told_the_same() -> None:
    token = signed(sub="17", exp=int(time.time()) + 2 * 86400 + 60, channels=["news"])
    lines = call("checktoken", token).splitlines()
    assert lines[0] == "A valid connection token (HS256)."
    assert [line.split() for line in lines[1:3]] == [["user:", "17"], ["channels:", "news"]]
    assert lines[3].startswith("expires: ")
    assert lines[3].endswith("(in 2 days)")


@pytest.mark.parametrize(
    ("claims", "end"),
    [
        ({"sub": "17"}, "the connection expires: "),
        ({"sub": "17", "channel": "$a"}, "the subscription expires: "),
    ],
    ids=["connection", "subscription"],
)
def test_expiry_of_a_token_is_not_that_of_what_it_opens(claims: dict[str, Any], end: str) -> None:
    now = int(time.time())
    token = signed(**claims, exp=now + 3630, expire_at=now + 2 * 86400 + 60)
    for_ever = signed(**claims, exp=now + 3630, expire_at=0)

    lines = call("checktoken", token).splitlines()

    assert lines[-2].startswith("expires: ")
    assert lines[-2].endswith("(in 1 hour)")
    assert lines[-1].startswith(end)
    assert lines[-1].endswith("(in 2 days)")
    assert call("checktoken", for_ever).splitlines()[-1] == f"{end}never"


def test_user_cannot_steer_the_terminal() -> None:
    printed = call("checktoken", signed(sub="\x1b[2J17"))
    assert "\\x1b[2J17" in printed
    assert "\x1b" not in printed


def expired() -> str:
    return signed(sub="17", exp=int(time.time()) - 7200)


REFUSED: dict[str, tuple[Callable[[], str], str, str]] = {
    "garbage": (lambda: "hello", "not in compact form", "Was all of it copied"),
    "other key": (
        lambda: signed("another key that is long enough", sub="17"),
        "wrong signature",
        "another key",
    ),
    "other algorithm": (
        lambda: signed("x" * 48, "HS384", sub="17"),
        "wrong signature",
        "another key",
    ),
    "no algorithm": (
        lambda: jwt.encode({"sub": "17"}, "", "none") + "AA",
        "no key for this algorithm",
        "It names none; the configured keys are for: HS256, HS384, HS512",
    ),
    "expired": (expired, "exp has passed", "Make a new one"),
    "too early": (
        lambda: signed(sub="17", nbf=int(time.time()) + 3600),
        "nbf has not come",
        "clock",
    ),
    "user is a number": (lambda: signed(sub=17), "claims have the wrong types", "strings"),
}


@pytest.mark.filterwarnings("ignore:The HMAC key is")
@pytest.mark.parametrize(("token", "reason", "meaning"), REFUSED.values(), ids=REFUSED)
def test_refused_token_is_told_with_the_reason(
    token: Callable[[], str], reason: str, meaning: str
) -> None:
    with pytest.raises(CommandError, match=rf"^The token is not valid: {reason}\..*{meaning}"):
        call("checktoken", token())


def test_expired_token_is_told_with_its_user(tmp_path: Path) -> None:
    token = expired()

    finished = run(tmp_path, {}, "checktoken", token, "--json")

    assert finished.returncode == 1
    assert json.loads(finished.stdout) == {
        "valid": False,
        "reason": "exp has passed",
        "user": "17",
        "expires_at": claims_of_expired(token)["exp"],
    }


def claims_of_expired(token: str) -> dict[str, Any]:
    decoded: dict[str, Any] = jwt.decode(
        token, SECRET, algorithms=["HS256"], options={"verify_exp": False}
    )
    return decoded


def test_forged_token_is_not_believed_in_what_it_says(tmp_path: Path) -> None:
    token = signed("another key that is long enough, too", sub="admin")
    finished = run(tmp_path, {}, "checktoken", token, "--json")
    assert finished.returncode == 1
    assert json.loads(finished.stdout) == {"valid": False, "reason": "wrong signature"}


@pytest.mark.parametrize("valid", [True, False], ids=["valid", "invalid"])
def test_neither_secret_nor_token_is_printed(tmp_path: Path, valid: bool) -> None:
    token = signed(SECRET if valid else "another key that is long enough, too", sub="17")
    finished = run(tmp_path, {}, "checktoken", token)
    assert finished.returncode == int(not valid)
    assert SECRET not in finished.stdout + finished.stderr
    assert token not in finished.stdout + finished.stderr


def test_token_is_read_from_standard_input(tmp_path: Path) -> None:
    finished = run(tmp_path, {}, "checktoken", "-", "--json", stdin=signed(sub="17") + "\n")
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["user"] == "17"


def test_key_set_that_cannot_be_fetched_is_no_verdict(settings: Settings) -> None:
    settings.REALTIME = {"token_jwks_public_endpoint": f"http://127.0.0.1:{refusing_port()}/"}
    token = jwt.encode({"sub": "17"}, RSA_KEY, "RS256", headers={"kid": "1"})
    with pytest.raises(CommandError, match="The token cannot be checked"):
        call("checktoken", token)


def test_token_of_a_public_key_is_valid(settings: Settings) -> None:
    public = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    settings.REALTIME = {"token_rsa_public_key": public.decode()}
    value = call_json("checktoken", jwt.encode({"sub": "17"}, RSA_KEY, "RS256"))
    assert (value["valid"], value["user"], value["algorithm"]) == (True, "17", "RS256")
