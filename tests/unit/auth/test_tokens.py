"""Claims of connection and subscription tokens, row by row."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.auth.claims import read_connect, read_subscribe
from realtime.auth.issue import connection_token, subscription_token
from realtime.config.reader import load
from realtime.tokens import ConnectToken, ExpiredToken, InvalidToken, SubscribeToken, Verifier
from tests.unit.auth.jwt_parts import NOW, SECRET, base64_of, token
from tests.unit.parts import data, quickly

CONFIG = load({"token_hmac_secret_key": SECRET})


@pytest.fixture
def verifier() -> Verifier:
    return Verifier(CONFIG)


async def connect(verifier: Verifier, claims: object) -> ConnectToken:
    return await verifier.connect(token(claims), NOW)


async def subscribe(verifier: Verifier, claims: object) -> SubscribeToken:
    return await verifier.subscribe(token(claims), NOW)


# connection tokens


@pytest.mark.parametrize(
    ("claims", "user"),
    [({"sub": "17"}, "17"), ({"sub": ""}, ""), ({"sub": None}, ""), ({}, ""), ({"sub": "é"}, "é")],
    ids=["user", "empty", "null", "absent", "not ASCII"],
)
async def test_sub_is_the_user(verifier: Verifier, claims: object, user: str) -> None:
    assert (await connect(verifier, claims)).user == user


@pytest.mark.parametrize(
    ("exp", "expires_at"),
    [
        (NOW + 1, NOW + 1),
        (int(NOW) + 60, NOW + 60),
        (NOW + 0.5, NOW + 0.5),
        (str(int(NOW) + 60), NOW + 60),
        (f"{NOW + 0.5}", NOW + 0.5),
        (None, None),
    ],
    ids=["float", "integer", "fraction", "string", "string with fraction", "null"],
)
async def test_exp_is_the_expiry(verifier: Verifier, exp: object, expires_at: float | None) -> None:
    assert (await connect(verifier, {"exp": exp})).expires_at == expires_at


@pytest.mark.parametrize(
    "claims",
    [
        *({"exp": exp} for exp in (NOW, NOW - 0.5, 0, -1, "0")),
        *({"nbf": nbf} for nbf in (NOW, NOW + 1, str(NOW + 1))),
        {"exp": NOW, "eto": True},
        {"exp": NOW - 1, "expire_at": NOW + 9},
    ],
    ids=str,
)
async def test_token_is_valid_before_exp_and_after_nbf(verifier: Verifier, claims: object) -> None:
    for verified in (connect, subscribe):
        with pytest.raises(ExpiredToken):
            await verified(verifier, claims)


@pytest.mark.parametrize("nbf", [NOW - 0.5, 0, None, str(NOW - 1)])
async def test_token_is_valid_after_nbf(verifier: Verifier, nbf: object) -> None:
    assert (await connect(verifier, {"nbf": nbf})).expires_at is None


@pytest.mark.parametrize(
    ("claims", "raw"),
    [
        pytest.param(b'{"info":{ "b":1.0, "a":2 }}', b'{ "b":1.0, "a":2 }', id="object"),
        pytest.param(b'{"info":null}', b"null", id="null is an info"),
        pytest.param(b'{"info":5}', b"5", id="number"),
        pytest.param(b"{}", None, id="absent"),
        pytest.param(b'{"b64info":null,"info":1}', b"1", id="null in b64info"),
        pytest.param(b'{"b64info":""}', None, id="empty b64info"),
    ],
)
async def test_info_keeps_its_spelling(
    verifier: Verifier, claims: bytes, raw: bytes | None
) -> None:
    info = (await connect(verifier, claims)).info
    assert (info and info.raw) == raw


async def test_b64info_replaces_info(verifier: Verifier) -> None:
    claims = {"info": {"a": 1}, "b64info": base64_of(b'{"b": 2}')}
    assert (await connect(verifier, claims)).info == data(b'{"b": 2}')


@pytest.mark.parametrize(
    "b64info",
    [
        pytest.param("!", id="no base64"),
        pytest.param(base64_of(b'{"b": 2}').rstrip("="), id="without padding"),
        pytest.param(base64.urlsafe_b64encode(b'"\xc3\xbf\xc3\xbf>?"').decode(), id="URL alphabet"),
        pytest.param(base64_of(b"hello"), id="no JSON"),
        pytest.param(base64_of(b'"\xff"'), id="no UTF-8"),
        pytest.param("é", id="not ASCII"),
        pytest.param(5, id="number"),
    ],
)
async def test_b64info_that_is_not_base64_is_an_invalid_token(
    verifier: Verifier, b64info: object
) -> None:
    with pytest.raises(InvalidToken):
        await connect(verifier, {"b64info": b64info})


@pytest.mark.parametrize(
    ("channels", "expected"),
    [(["a", "ns:b"], ("a", "ns:b")), ([], ()), (None, ()), (["a", "", "b", "a"], ("a", "b"))],
    ids=["two", "none", "null", "empty and twice"],
)
async def test_channels_are_the_server_side_subscriptions(
    verifier: Verifier, channels: object, expected: tuple[str, ...]
) -> None:
    assert (await connect(verifier, {"channels": channels})).channels == expected


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": 17},
        {"sub": True},
        {"sub": ["17"]},
        {"exp": "soon"},
        {"exp": ""},
        {"exp": [1]},
        {"exp": True},
        {"exp": "inf"},
        {"exp": "nan"},
        {"exp": 10**400},
        {"nbf": "soon"},
        {"nbf": {}},
        {"iat": "soon"},
        {"iat": []},
        {"iss": 5},
        {"jti": 5},
        {"aud": 5},
        {"aud": [5]},
        {"channels": "a"},
        {"channels": [5]},
        {"channels": {}},
        {"expire_at": "soon"},
        {"expire_at": []},
        {"subs": ["a"]},
        {"subs": {"a": 5}},
        {"subs": {"a": {"b64info": "!"}}},
        {"subs": {"a": {"b64data": base64_of(b"hello")}}},
        {"subs": {"a": {"override": {"presence": True}}}},
        {"subs": {"a": {"override": {"presence": {"value": 1}}}}},
        {"subs": {"a": {"override": {"presence": {}}}}},
        [],
        "x",
        5,
        None,
        b"hello",
        b"{",
        b'{"sub":"\xff"}',
        b"{" + b'"a":{' * 50_000,
    ],
    ids=lambda claims: str(claims)[:30],
)
async def test_claims_of_the_wrong_type_are_an_invalid_token(
    verifier: Verifier, claims: object
) -> None:
    with pytest.raises(InvalidToken):
        await connect(verifier, claims)


@pytest.mark.parametrize(
    "claims",
    [
        {"iat": NOW + 1000},
        {"iss": "someone"},
        {"jti": "1"},
        {"aud": "us"},
        {"aud": ["us", "them"]},
        {"aud": None, "iss": None, "jti": None, "iat": None},
        {"anything": {"else": 1}},
        {},
    ],
    ids=str,
)
async def test_other_claims_are_not_looked_at(verifier: Verifier, claims: object) -> None:
    assert await connect(verifier, claims) == ConnectToken("")


# subscription tokens


@pytest.mark.parametrize(
    "claims",
    [
        {"client": "c", "channel": "$private"},
        {"sub": "17", "channel": "$private", "client": "c"},
        {"sub": "17", "channel": 1},
        {"subs": {}, "channel": "a"},
    ],
)
async def test_subscription_token_is_no_connection_token(
    verifier: Verifier, claims: dict[str, object]
) -> None:
    with pytest.raises(InvalidToken, match="subscription token"):
        await verifier.connect(token(claims), NOW)


async def test_subscription_token_names_client_and_channel(verifier: Verifier) -> None:
    claims = {"client": "C", "channel": "$a", "info": {"a": 1}}
    expected = SubscribeToken("C", "$a", data('{"a": 1}'), is_nameless=True)
    assert await subscribe(verifier, claims) == expected


@pytest.mark.parametrize(
    "claims",
    [
        *({"client": 5}, {"channel": 5}, {"eto": 1}, {"eto": "true"}, {"b64info": "!"}, {"aud": 5}),
        *({"b64data": "!"}, {"expire_at": "soon"}, {"override": 5}, {"override": {"presence": 1}}),
        [],
    ],
    ids=str,
)
async def test_wrong_claims_are_an_invalid_subscription_token(
    verifier: Verifier, claims: object
) -> None:
    with pytest.raises(InvalidToken):
        await subscribe(verifier, claims)


async def test_connection_token_made_here_is_verified_here(verifier: Verifier) -> None:
    before = time.time()
    made = connection_token(CONFIG, "17", ttl=60, info={"a": 1}, channels=["a", "b"])
    verified = await verifier.connect(made, before)
    assert (verified.user, verified.channels) == ("17", ("a", "b"))
    assert verified.info is not None
    assert verified.info.json == b'{"a":1}'
    assert verified.expires_at is not None
    assert before + 59 <= verified.expires_at <= time.time() + 60


@pytest.mark.parametrize("keep", [False, True])
async def test_subscription_token_made_here_is_verified_here(
    verifier: Verifier, keep: bool
) -> None:
    now = time.time()
    made = subscription_token(CONFIG, "C", "$a", ttl=60, keep_subscription=keep)
    verified = await verifier.subscribe(made, now)
    assert (verified.client, verified.channel) == ("C", "$a")
    assert (verified.expires_at is None) is keep
    assert verified.token_expires_at is not None


@quickly
@given(st.binary(max_size=60), st.sampled_from([read_connect, read_subscribe]))
def test_arbitrary_claims_raise_nothing_else(claims: bytes, read: Callable[..., Any]) -> None:
    try:
        verified = read(claims, NOW)
    except (InvalidToken, ExpiredToken):
        return
    assert isinstance(verified, ConnectToken | SubscribeToken)
