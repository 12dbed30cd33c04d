"""Tokens: the compact form, algorithms and keys."""

from __future__ import annotations

import datetime
import string
import tracemalloc
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from realtime.auth.keys import InvalidKey
from realtime.config.options import Config
from realtime.config.reader import load
from realtime.tokens import ExpiredToken, InvalidToken, Verifier
from tests.unit.auth.jwt_parts import (
    CURVES,
    NOW,
    SECRET,
    base64url,
    pem,
    rsa_key,
    segment,
    sign,
    token,
)
from tests.unit.parts import quickly

RSA_KEY = rsa_key()
EC_KEYS = {size: ec.generate_private_key(curve) for size, curve in CURVES.items()}
CLAIMS = {"sub": "17"}

HMAC_ONLY = load({"token_hmac_secret_key": SECRET})
RSA_ONLY = load({"token_rsa_public_key": pem(RSA_KEY)})


def certificate(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()


async def user_of(config: Config, text: str) -> str:
    return (await Verifier(config).connect(text, NOW)).user


# algorithms


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_hmac_token_is_accepted(algorithm: str) -> None:
    assert await user_of(HMAC_ONLY, token(CLAIMS, algorithm)) == "17"


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512"])
@pytest.mark.parametrize("form", [pem, certificate])
async def test_rsa_token_is_accepted(algorithm: str, form: Any) -> None:
    config = load({"token_rsa_public_key": form(RSA_KEY)})
    assert await user_of(config, token(CLAIMS, algorithm, RSA_KEY)) == "17"


@pytest.mark.parametrize("size", CURVES)
@pytest.mark.parametrize("form", [pem, certificate])
async def test_ecdsa_token_is_accepted(size: str, form: Any) -> None:
    config = load({"token_ecdsa_public_key": form(EC_KEYS[size])})
    assert await user_of(config, token(CLAIMS, f"ES{size}", EC_KEYS[size])) == "17"


async def test_keys_of_all_kinds_work_side_by_side() -> None:
    config = load(
        {
            "token_hmac_secret_key": SECRET,
            "token_rsa_public_key": pem(RSA_KEY),
            "token_ecdsa_public_key": pem(EC_KEYS["256"]),
        }
    )

    assert await user_of(config, token(CLAIMS)) == "17"
    assert await user_of(config, token(CLAIMS, "RS256", RSA_KEY)) == "17"
    assert await user_of(config, token(CLAIMS, "ES256", EC_KEYS["256"])) == "17"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        pytest.param(Config(), token(CLAIMS), id="no key configured"),
        pytest.param(HMAC_ONLY, token(CLAIMS, "RS256", RSA_KEY), id="no key for RSA"),
        pytest.param(RSA_ONLY, token(CLAIMS), id="no key for HMAC"),
        pytest.param(RSA_ONLY, token(CLAIMS, "HS256", pem(RSA_KEY)), id="public key as a secret"),
        pytest.param(RSA_ONLY, token(CLAIMS, "PS256", RSA_KEY), id="RSA with PSS"),
        pytest.param(HMAC_ONLY, token(CLAIMS, "none"), id="none with empty signature"),
        pytest.param(
            HMAC_ONLY,
            f"{segment({'alg': 'none'})}.{segment(CLAIMS)}.{base64url(b'x')}",
            id="none with a signature",
        ),
        pytest.param(HMAC_ONLY, token(CLAIMS, "HS256", SECRET + "x"), id="another secret"),
        pytest.param(RSA_ONLY, token(CLAIMS, "RS256", rsa_key(2)), id="another key"),
        pytest.param(
            load({"token_ecdsa_public_key": pem(EC_KEYS["256"])}),
            token(CLAIMS, "ES384", EC_KEYS["384"]),
            id="another curve",
        ),
        pytest.param(
            load({"token_ecdsa_public_key": pem(EC_KEYS["256"])}),
            token(CLAIMS, "ES512", EC_KEYS["256"]),
            id="curve of another algorithm",
        ),
    ],
)
async def test_token_signed_otherwise_is_invalid(config: Config, text: str) -> None:
    with pytest.raises(InvalidToken):
        await user_of(config, text)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"alg": "hs256"},
        {"alg": None},
        {"alg": 5},
        {"alg": "HS256", "crit": ["exp"]},
        [],
        "HS256",
    ],
    ids=str,
)
async def test_header_without_a_known_algorithm_is_invalid(header: Any) -> None:
    with pytest.raises(InvalidToken):
        await user_of(HMAC_ONLY, token(CLAIMS, header=header))


@pytest.mark.parametrize(
    "header",
    [{"alg": "HS256"}, {"alg": "HS256", "typ": "anything"}, {"alg": "HS256", "kid": "k", "x": 1}],
    ids=str,
)
async def test_only_the_algorithm_of_the_header_matters(header: Any) -> None:
    assert await user_of(HMAC_ONLY, token(CLAIMS, header=header)) == "17"


# the compact form

GOOD = token(CLAIMS)
HEAD, BODY, SIGNATURE = GOOD.split(".")
ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"


def same_bytes(encoded: str) -> str:
    """Return another text that decoders read as the same bytes: its last bits are of no byte."""
    other = encoded[:-1] + ALPHABET[ALPHABET.index(encoded[-1]) + 1]
    assert urlsafe_b64decode(f"{other}=") == urlsafe_b64decode(f"{encoded}=")
    return other


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("hello", id="a word"),
        pytest.param("..", id="dots"),
        pytest.param(f"{HEAD}.{BODY}", id="no signature"),
        pytest.param(f"{HEAD}.{BODY}.", id="empty signature"),
        pytest.param(f".{BODY}.{SIGNATURE}", id="no header"),
        pytest.param(f"{HEAD}..{SIGNATURE}", id="no claims"),
        pytest.param(f"{GOOD}.{SIGNATURE}", id="four parts"),
        pytest.param(f"{GOOD}=", id="padding"),
        pytest.param(f"{GOOD} ", id="trailing space"),
        pytest.param(f"{GOOD}\n", id="trailing line break"),
        pytest.param(f" {GOOD}", id="leading space"),
        pytest.param(f"{HEAD}==.{BODY}.{SIGNATURE}", id="padding in the header"),
        pytest.param(f"{HEAD}.{BODY}.{SIGNATURE}A", id="length no base64 has"),
        pytest.param(f"{HEAD}.{BODY}.{SIGNATURE[:-4]}", id="shorter signature"),
        pytest.param(f"{HEAD}.{segment({'sub': '18'})}.{SIGNATURE}", id="other claims"),
        pytest.param(f"{segment({'alg': 'HS512'})}.{BODY}.{SIGNATURE}", id="other header"),
        pytest.param(f"{HEAD}.{BODY}.+/{SIGNATURE[2:]}", id="standard alphabet"),
        pytest.param(f"é{GOOD}", id="not ASCII"),
        pytest.param(f"{HEAD}.{BODY}.{same_bytes(SIGNATURE)}", id="bits that no byte has"),
    ],
)
async def test_anything_but_a_signed_compact_token_is_invalid(text: str) -> None:
    with pytest.raises(InvalidToken):
        await user_of(HMAC_ONLY, text)


async def test_header_that_was_read_before_is_still_right_or_wrong() -> None:
    wrong = f"{base64url(b'[]')}.{BODY}.{SIGNATURE}"
    for _ in range(2):
        assert await user_of(HMAC_ONLY, GOOD) == "17"
        with pytest.raises(InvalidToken, match="malformed header"):
            await user_of(HMAC_ONLY, wrong)


async def test_signature_is_checked_before_the_claims() -> None:
    expired = token({"exp": 0}, "HS256", SECRET + "x")
    with pytest.raises(InvalidToken):
        await user_of(HMAC_ONLY, expired)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        pytest.param(
            {"token_hmac_secret_key": pem(RSA_KEY)}, "token_hmac_secret_key", id="key as a secret"
        ),
        pytest.param({"token_rsa_public_key": "x"}, "token_rsa_public_key", id="RSA: no PEM"),
        pytest.param(
            {"token_rsa_public_key": pem(EC_KEYS["256"])}, "token_rsa_public_key", id="RSA: ECDSA"
        ),
        pytest.param({"token_ecdsa_public_key": "x"}, "token_ecdsa_public_key", id="ECDSA: no PEM"),
        pytest.param(
            {"token_ecdsa_public_key": pem(RSA_KEY)}, "token_ecdsa_public_key", id="ECDSA: RSA"
        ),
        pytest.param(
            {"token_ecdsa_public_key": pem(ed25519.Ed25519PrivateKey.generate())},
            "token_ecdsa_public_key",
            id="ECDSA: Edwards curve",
        ),
        pytest.param(
            {"token_rsa_public_key": "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"},
            "token_rsa_public_key",
            id="RSA: no certificate",
        ),
    ],
)
def test_option_without_its_kind_of_key_is_refused(options: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidKey, match=name) as raised:
        Verifier(load({**options}))
    assert options[name] not in str(raised.value) or options[name] == "x"


# nothing of a token in an exception


def chain(error: BaseException | None) -> str:
    text = ""
    while error is not None:
        text += f"{error!r} {error} {error.args!r}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return text


MARK = "zqMarkOfThisTokenqz"


MARKED: dict[str, str] = {
    "no token": MARK,
    "wrong signature": token({"sub": MARK}, "HS256", SECRET + "x"),
    "expired": token({"sub": MARK, "exp": 0}),
    "not yet": token({"sub": MARK, "nbf": NOW + 5}),
    "claim type": token({"sub": 5, "iss": MARK}),
    "exp": token({"exp": MARK}),
    "b64info": token({"b64info": MARK}),
    "channels": token({"info": MARK, "channels": MARK}),
    "header": token({"sub": MARK}, header={"alg": MARK}),
    "claims": token(MARK.encode()),
}


@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
async def test_exception_shows_nothing_of_the_token(text: str) -> None:
    with pytest.raises((InvalidToken, ExpiredToken)) as raised:
        await user_of(HMAC_ONLY, text)
    shown = chain(raised.value)
    assert shown
    assert MARK not in shown
    assert not any(part in shown for part in text.split(".") if part)


def test_secret_does_not_show_in_the_verifier() -> None:
    assert SECRET not in repr(Verifier(HMAC_ONLY))


@quickly
@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda raw: f"{HEAD}.{base64url(raw)}.x"))
async def test_arbitrary_text_is_an_invalid_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        await user_of(HMAC_ONLY, text)


@quickly
@given(st.binary(max_size=40))
async def test_arbitrary_header_is_an_invalid_token(header: bytes) -> None:
    message = f"{base64url(header)}.{BODY}"
    signature = base64url(sign(message.encode(), "HS256", SECRET))
    with pytest.raises(InvalidToken):
        await user_of(HMAC_ONLY, f"{message}.{signature}")


# sizes


@pytest.mark.parametrize("padding", [1900, 2100, 60_000])
async def test_header_above_2_kib_is_refused(padding: int) -> None:
    text = token(CLAIMS, header={"alg": "HS256", "kid": "k" * padding})
    if padding < 2000:
        assert await user_of(HMAC_ONLY, text) == "17"
    else:
        with pytest.raises(InvalidToken, match="too large"):
            await user_of(HMAC_ONLY, text)


@pytest.mark.parametrize("size", [40_000, 60_000])
async def test_token_above_64_kib_is_refused(size: int) -> None:
    text = token({"sub": "17", "info": "i" * size})
    if size < 48_000:
        assert await user_of(HMAC_ONLY, text) == "17"
    else:
        with pytest.raises(InvalidToken, match="too large"):
            await user_of(HMAC_ONLY, text)


async def test_nothing_of_refused_tokens_is_kept() -> None:
    verifier = Verifier(HMAC_ONLY)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(300):
            small = {"alg": "HS256", "kid": f"{number}" * 600}
            large = small | {"x": "y" * 50_000}
            for text in (token(CLAIMS, key="another", header=small), token(CLAIMS, header=large)):
                with pytest.raises(InvalidToken):
                    await verifier.connect(text, NOW)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < 500_000  # of 18 MB
