"""Tokens of observers: only the right key makes one, and it is good for nothing else."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from typing import Any

import pytest

from realtime.auth import issue
from realtime.auth.claims import OBSERVER, ConnectToken, ObserverToken
from realtime.config import sources
from realtime.config.options import Config
from realtime.config.reader import load
from realtime.errors import BadRequest, NamespaceNotFound
from realtime.tokens import ExpiredToken, InvalidToken, Verifier, observer_token
from tests.unit.auth.jwt_parts import NOW, SECRET, base64url, pem, rsa_key, segment, token

KEY = "0123456789abcdef0123456789abcdef"
KEYS = [KEY.encode()]
HEADER = {"alg": "HS256", "typ": "JWT", "kid": OBSERVER}
CLAIMS = {"aud": OBSERVER, "channels": ["a"], "exp": NOW + 60}
CONFIG = load({"token_hmac_secret_key": SECRET})
RSA_KEY = rsa_key()


def made(
    claims: object = CLAIMS, algorithm: str = "HS256", key: Any = KEY, **header: object
) -> str:
    return token(claims, algorithm, key, header={**HEADER, "alg": algorithm, **header})


async def channels_of(text: str, keys: Sequence[bytes] = KEYS, now: float = NOW) -> tuple[str, ...]:
    verified = await Verifier(CONFIG, keys).identify(text, now)
    assert isinstance(verified, ObserverToken)
    return verified.channels


async def test_token_that_was_made_by_hand_is_accepted() -> None:
    assert await channels_of(made()) == ("a",)


async def test_token_that_was_issued_is_accepted_until_it_expires() -> None:
    now = time.time()
    text = issue.observer_token(KEYS[0], ["a", "b:c"], ttl=60)
    verified = await Verifier(CONFIG, KEYS).identify(text, now)
    assert isinstance(verified, ObserverToken)
    assert verified.channels == ("a", "b:c")
    assert now + 58 <= verified.expires_at <= now + 60
    with pytest.raises(ExpiredToken):
        await channels_of(text, now=now + 61)


async def test_any_key_verifies_so_that_keys_can_be_changed() -> None:
    assert await channels_of(made(), [b"a newer key", *KEYS]) == ("a",)


REFUSED: dict[str, str] = {
    "HMAC key of ordinary tokens": made(key=SECRET),
    "HS384 with the right key": made(algorithm="HS384"),
    "HS512 with the right key": made(algorithm="HS512"),
    "RS256": made(algorithm="RS256", key=RSA_KEY),
    "alg none": made(algorithm="none"),
    "alg none without a signature": f"{segment({**HEADER, 'alg': 'none'})}.{segment(CLAIMS)}.",
    "alg none with a signature": f"{made(algorithm='none').rpartition('.')[0]}.{base64url(b'x')}",
    "signature of zeros": f"{made().rpartition('.')[0]}.{base64url(bytes(32))}",
    "no key ID": token(CLAIMS, key=KEY),
    "another key ID": made(kid="another"),
    "critical extension": made(crit=["exp"]),
    "another audience": made(CLAIMS | {"aud": "another"}),
    "several audiences": made(CLAIMS | {"aud": [OBSERVER]}),
    "no audience": made({name: CLAIMS[name] for name in ("channels", "exp")}),
    "no expiry": made({name: CLAIMS[name] for name in ("aud", "channels")}),
    "no channels": made({name: CLAIMS[name] for name in ("aud", "exp")}),
    "expiry null": made(CLAIMS | {"exp": None}),
    "empty channels": made(CLAIMS | {"channels": []}),
    "channels as text": made(CLAIMS | {"channels": "a"}),
    "channels as numbers": made(CLAIMS | {"channels": [1]}),
    "no JSON": made(b"no JSON"),
    "empty": "",
    "two parts": "a.b",
    "three short parts": "a.b.c",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
async def test_token_that_is_not_quite_an_observers_is_refused(text: str) -> None:
    with pytest.raises(InvalidToken):
        await channels_of(text)


async def test_token_is_refused_where_there_are_no_keys() -> None:
    with pytest.raises(InvalidToken):
        await channels_of(made(), [])


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        Config(),
        load({"token_rsa_public_key": pem(RSA_KEY)}),
        load({"token_hmac_secret_key": SECRET, "token_rsa_public_key": pem(RSA_KEY)}),
    ],
    ids=["HMAC", "nothing", "RSA", "HMAC and RSA"],
)
async def test_token_is_accepted_with_any_configuration_and_as_no_other_token(
    config: Config,
) -> None:
    verifier = Verifier(config, KEYS)
    assert isinstance(await verifier.identify(made(), NOW), ObserverToken)
    with pytest.raises(InvalidToken):
        await verifier.connect(made(), NOW)
    with pytest.raises(InvalidToken):
        await verifier.subscribe(made(), NOW)


async def test_token_without_the_key_id_is_a_connection_token() -> None:
    text = token(CLAIMS | {"aud": OBSERVER, "sub": "17"})
    verified = await Verifier(CONFIG, KEYS).identify(text, NOW)
    assert isinstance(verified, ConnectToken)
    assert verified.user == "17"


# the site's


def test_key_is_derived_from_secret_key_and_has_no_other_use(settings: Any) -> None:
    settings.SECRET_KEY = "one"
    (one,) = sources.observer_keys()
    prefix = sources.redis_prefix(sources.current())

    settings.SECRET_KEY = "two"
    (two,) = sources.observer_keys()

    assert one != two
    assert len(one) == 32
    assert b"one" not in one
    assert prefix.removeprefix("realtime-") not in one.hex()


async def test_fallbacks_verify_and_do_not_sign(settings: Any) -> None:
    settings.SECRET_KEY = "old"
    old = observer_token("a")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", ["old"]
    now = time.time()

    assert await channels_of(old, sources.observer_keys(), now) == ("a",)
    assert await channels_of(observer_token("a"), sources.observer_keys()[:1], now) == ("a",)

    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(InvalidToken):
        await channels_of(old, sources.observer_keys(), now)


def test_token_names_its_key_its_audience_and_several_channels() -> None:
    text = observer_token(["a", "b"], ttl=60)
    header, claims, _ = (urlsafe_b64decode(part + "==") for part in text.split("."))
    assert json.loads(header) == HEADER
    claims = json.loads(claims)
    assert (claims["aud"], claims["channels"]) == (OBSERVER, ["a", "b"])
    assert abs(claims["exp"] - time.time() - 60) < 5


def test_token_needs_channels_that_exist() -> None:
    with pytest.raises(ValueError, match="at least one"):
        observer_token([])
    with pytest.raises(TypeError):
        observer_token([1])  # type: ignore[list-item]
    with pytest.raises(BadRequest):
        observer_token("")
    with pytest.raises(BadRequest):
        observer_token(["a", "\u00e4"])
    with pytest.raises(NamespaceNotFound):
        observer_token("nope:a")
