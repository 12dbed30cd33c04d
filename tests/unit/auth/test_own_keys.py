"""Subscription tokens with keys and claims of their own, and user IDs in a claim of their own."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.auth.issue import connection_token, subscription_token, user_subscription_token
from realtime.auth.keys import InvalidKey
from realtime.config.reader import load
from realtime.tokens import InvalidToken, Verifier
from tests.unit.auth.jwt_parts import NOW, SECRET, token

OTHER = "another secret, which is long enough for every HMAC algorithm as well: 64 bytes"
SEPARATE: dict[str, Any] = {
    "token_hmac_secret_key": SECRET,
    "subscription_token_hmac_secret_key": OTHER,
}
CONNECTION = {"sub": "17"}
SUBSCRIPTION = {"sub": "17", "channel": "$a"}


async def test_each_key_verifies_its_own_kind_of_tokens() -> None:
    verifier = Verifier(load(SEPARATE))

    assert (await verifier.connect(token(CONNECTION), NOW)).user == "17"
    assert (await verifier.subscribe(token(SUBSCRIPTION, key=OTHER), NOW)).channel == "$a"
    with pytest.raises(InvalidToken):
        await verifier.subscribe(token(SUBSCRIPTION), NOW)
    with pytest.raises(InvalidToken):
        await verifier.connect(token(CONNECTION, key=OTHER), NOW)
    with pytest.raises(InvalidToken):
        await verifier.identify(token(CONNECTION, key=OTHER), NOW)


async def test_without_a_key_of_their_own_no_subscription_token_is_valid() -> None:
    verifier = Verifier(
        load({"token_hmac_secret_key": SECRET, "separate_subscription_token_config": True})
    )
    with pytest.raises(InvalidToken):
        await verifier.subscribe(token(SUBSCRIPTION), NOW)


async def test_previous_key_of_one_kind_does_not_verify_the_other() -> None:
    options = {
        "token_hmac_secret_key": SECRET,
        "subscription_token_hmac_previous_secret_key": OTHER,
    }
    verifier = Verifier(load(options))

    assert (await verifier.subscribe(token(SUBSCRIPTION, key=OTHER), NOW)).channel == "$a"
    for key, verify in ((SECRET, verifier.subscribe), (OTHER, verifier.connect)):
        with pytest.raises(InvalidToken):
            await verify(token(SUBSCRIPTION, key=key), NOW)


async def test_audience_and_issuer_are_those_of_the_kind() -> None:
    options = {
        **SEPARATE,
        "token_audience": "connections",
        "subscription_token_audience": "subscriptions",
        "subscription_token_issuer_regex": "^us$",
    }
    verifier = Verifier(load(options))
    good = {**SUBSCRIPTION, "aud": "subscriptions", "iss": "us"}

    assert (await verifier.subscribe(token(good, key=OTHER), NOW)).channel == "$a"
    for wrong in ({"aud": "connections"}, {"iss": "them"}):
        with pytest.raises(InvalidToken):
            await verifier.subscribe(token({**good, **wrong}, key=OTHER), NOW)


@pytest.mark.parametrize(
    "options",
    [
        {**SEPARATE, "subscription_token_audience": "subscriptions"},
        {"token_hmac_secret_key": SECRET, "token_audience": "us", "token_issuer": "site"},
        {"token_hmac_secret_key": SECRET, "token_user_id_claim": "uid"},
    ],
    ids=["keys of their kind", "audience and issuer", "claim of the user"],
)
async def test_tokens_made_here_have_what_the_options_want(options: dict[str, Any]) -> None:
    config = load(options)
    verifier = Verifier(config)
    assert (await verifier.connect(connection_token(config, "17"), NOW)).user == "17"
    assert (await verifier.subscribe(subscription_token(config, "c", "$a"), NOW)).client == "c"
    assert (await verifier.subscribe(user_subscription_token(config, "17", "$a"), NOW)).user == "17"


@pytest.mark.parametrize(
    "options",
    [
        {"subscription_token_rsa_public_key": "no key"},
        {"subscription_token_ecdsa_public_key": "no key"},
    ],
    ids=str,
)
def test_wrong_key_of_subscription_tokens_is_named(options: dict[str, Any]) -> None:
    [name] = options
    with pytest.raises(InvalidKey, match=name):
        Verifier(load({**SEPARATE, **options}))


@pytest.mark.parametrize(
    ("claims", "user"),
    [
        ({"uid": "17"}, "17"),
        ({"uid": "17", "sub": "18"}, "17"),
        ({"uid": "17", "sub": 18}, "17"),
        ({"sub": "18"}, ""),
        ({"uid": None}, ""),
        ({"uid": ""}, ""),
        ({"uid": 17}, None),
        ({"uid": ["17"]}, None),
    ],
    ids=str,
)
async def test_user_id_is_in_the_claim_that_the_option_names(
    claims: dict[str, Any], user: str | None
) -> None:
    verifier = Verifier(load({"token_hmac_secret_key": SECRET, "token_user_id_claim": "uid"}))
    if user is None:
        with pytest.raises(InvalidToken):
            await verifier.connect(token(claims), NOW)
    else:
        assert (await verifier.connect(token(claims), NOW)).user == user


async def test_subscription_token_is_for_the_user_in_that_claim() -> None:
    verifier = Verifier(load({"token_hmac_secret_key": SECRET, "token_user_id_claim": "uid"}))
    verified = await verifier.subscribe(token({"channel": "$a", "uid": "17", "sub": "18"}), NOW)
    assert verified.is_for("c", "17", absent_is_anonymous=True)
    assert not verified.is_for("c", "18", absent_is_anonymous=True)
