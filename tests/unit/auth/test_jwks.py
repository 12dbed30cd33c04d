"""Keys of a JSON Web Key Set endpoint, from a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from realtime.auth import keys
from realtime.auth.keys import KeysUnavailable
from realtime.config.reader import load
from realtime.tokens import InvalidToken, Verifier
from tests.unit.auth.jwt_parts import NOW, SECRET, jwk, pem, rsa_key, token

FIRST, SECOND = rsa_key(1), rsa_key(2)


class Endpoint:
    """An HTTP server that has a key set and counts requests."""

    def __init__(self) -> None:
        self.body = json.dumps({"keys": [jwk(FIRST, "first")]})
        self.length: int | None = None
        """What the header says of the body's length, if it says anything."""
        self.status = 200
        self.resets = False
        """Whether connections are reset in place of an answer."""
        self.requests = 0
        self.answering = threading.Event()
        """While it is cleared, requests wait."""
        self.answering.set()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                endpoint.requests += 1
                endpoint.answering.wait(60)
                if endpoint.resets:
                    at_once = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
                    self.connection.close()
                    return
                try:
                    self.send_response(endpoint.status)
                    if endpoint.length is not None:
                        self.send_header("Content-Length", str(endpoint.length))
                    self.end_headers()
                    self.wfile.write(endpoint.body.encode("latin-1"))
                except OSError:
                    return  # the client has gone

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        self.answering.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    started = Endpoint()
    yield started
    started.stop()


@pytest.fixture
def verifier(endpoint: Endpoint) -> Iterator[Verifier]:
    made = Verifier(
        load(
            {
                "token_hmac_secret_key": SECRET,
                "token_rsa_public_key": pem(SECOND),
                "token_jwks_public_endpoint": endpoint.url,
            }
        )
    )
    yield made
    made.close()


def signed(key_id: str | None = "first", key: object = FIRST, algorithm: str = "RS256") -> str:
    header = {"alg": algorithm} | ({} if key_id is None else {"kid": key_id})
    return token({"sub": "17"}, algorithm, key, header=header)


async def user_of(verifier: Verifier, text: str) -> str:
    return (await verifier.connect(text, NOW)).user


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512"])
async def test_token_signed_with_a_key_of_the_set_is_accepted(
    verifier: Verifier, algorithm: str
) -> None:
    assert await user_of(verifier, signed(algorithm=algorithm)) == "17"


async def test_key_set_is_fetched_once(verifier: Verifier, endpoint: Endpoint) -> None:
    for _ in range(5):
        await user_of(verifier, signed())
    assert endpoint.requests == 1


async def test_many_at_once_share_one_fetch(verifier: Verifier, endpoint: Endpoint) -> None:
    users = await asyncio.gather(*(user_of(verifier, signed()) for _ in range(20)))
    assert users == ["17"] * 20
    assert endpoint.requests == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(signed(None), id="no key ID"),
        pytest.param(signed(""), id="empty key ID"),
        pytest.param(token({"sub": "17"}), id="HMAC, although a secret is configured"),
        pytest.param(signed("first", SECRET, "HS256"), id="HMAC with a key ID"),
        pytest.param(
            token({"sub": "17"}, "RS256", SECOND), id="RSA, although a public key is configured"
        ),
    ],
)
async def test_only_rsa_tokens_with_a_key_id_are_looked_up(
    verifier: Verifier, endpoint: Endpoint, text: str
) -> None:
    with pytest.raises(InvalidToken):
        await user_of(verifier, text)
    assert endpoint.requests == 0


async def test_token_signed_with_another_key_is_invalid(verifier: Verifier) -> None:
    with pytest.raises(InvalidToken):
        await user_of(verifier, signed("first", SECOND))


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(jwk(SECOND, "second", use="enc"), id="for encryption"),
        pytest.param({k: v for k, v in jwk(SECOND, "second").items() if k != "use"}, id="no use"),
        pytest.param(jwk(SECOND, None), id="no key ID"),
        pytest.param({"kty": "oct", "k": "c2VjcmV0", "kid": "second", "use": "sig"}, id="secret"),
        pytest.param({"kty": "RSA", "kid": "second", "use": "sig"}, id="broken"),
    ],
)
async def test_other_entries_are_passed_over(
    verifier: Verifier,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    entry: dict[str, object],
) -> None:
    monkeypatch.setattr(keys, "KEY_SET_COOLDOWN", 0)
    endpoint.body = json.dumps({"keys": [entry, jwk(FIRST, "first")]})
    assert await user_of(verifier, signed()) == "17"
    with pytest.raises(InvalidToken):
        await user_of(verifier, signed("second", SECOND))


async def test_unknown_key_ids_do_not_flood_the_endpoint(
    verifier: Verifier, endpoint: Endpoint
) -> None:
    await user_of(verifier, signed())
    for number in range(20):
        with pytest.raises(KeysUnavailable):
            await user_of(verifier, signed(f"unknown-{number}"))
    assert endpoint.requests == 1
    assert await user_of(verifier, signed()) == "17"


async def test_unknown_key_id_is_invalid_when_the_set_may_be_fetched_again(
    verifier: Verifier, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "KEY_SET_COOLDOWN", 0)
    await user_of(verifier, signed())
    with pytest.raises(InvalidToken):
        await user_of(verifier, signed("unknown"))
    assert endpoint.requests == 2


async def test_new_key_is_not_wrong_while_the_set_may_not_be_fetched_again(
    verifier: Verifier, endpoint: Endpoint
) -> None:
    """A stranger has sent an unknown ID, and the endpoint gets a new key after that."""
    with pytest.raises(InvalidToken):
        await user_of(verifier, signed("unknown"))
    endpoint.body = json.dumps({"keys": [jwk(SECOND, "second")]})
    with pytest.raises(KeysUnavailable):
        await user_of(verifier, signed("second", SECOND))
    assert endpoint.requests == 1


async def test_new_key_is_not_wrong_while_the_endpoint_is_away(
    verifier: Verifier, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "KEY_SET_COOLDOWN", 0)
    await user_of(verifier, signed())
    endpoint.status = 500
    with pytest.raises(KeysUnavailable):
        await user_of(verifier, signed("second", SECOND))
    assert await user_of(verifier, signed()) == "17"  # its key is known


BODIES = ["hello", "[]", "5", '{"keys":5}', '{"keys":[5]}', "{}", "\xff", "[" * 100_000]


@pytest.mark.parametrize(
    "changes",
    [
        *({"body": body} for body in BODIES),
        {"status": 500, "body": "{}"},
        {"status": 404, "body": "not found"},
        {"length": 10_000},  # the response breaks off
        {"resets": True},
    ],
    ids=lambda changes: str(changes)[:30],
)
async def test_endpoint_without_a_key_set_says_nothing_about_tokens(
    verifier: Verifier, endpoint: Endpoint, changes: dict[str, object]
) -> None:
    for name, value in changes.items():
        setattr(endpoint, name, value)
    with pytest.raises(KeysUnavailable):
        await user_of(verifier, signed())
    assert endpoint.requests == 2


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [(500, "{}", "status 500"), (200, "hello", "the response is not a JSON Web Key Set")],
)
async def test_log_says_once_why_the_key_set_cannot_be_fetched(
    verifier: Verifier,
    endpoint: Endpoint,
    caplog: pytest.LogCaptureFixture,
    status: int,
    body: str,
    why: str,
) -> None:
    endpoint.status, endpoint.body = status, body

    for _ in range(3):
        with pytest.raises(KeysUnavailable):
            await user_of(verifier, signed())

    assert endpoint.requests == 2  # an endpoint that is down is not asked again at once
    assert caplog.record_tuples == [
        (
            "realtime.tokens",
            logging.ERROR,
            f"Could not fetch the key set of token_jwks_public_endpoint: {why}",
        )
    ]


async def test_address_without_a_server_makes_keys_unavailable(endpoint: Endpoint) -> None:
    endpoint.stop()
    verifier = Verifier(load({"token_jwks_public_endpoint": endpoint.url}))
    with pytest.raises(KeysUnavailable):
        await user_of(verifier, signed())
    verifier.close()


async def test_slow_endpoint_is_given_up_after_two_tries_of_a_second(
    verifier: Verifier, endpoint: Endpoint
) -> None:
    endpoint.answering.clear()
    started = time.monotonic()
    with pytest.raises(KeysUnavailable):
        await user_of(verifier, signed())
    assert 1.5 < time.monotonic() - started < 10
    assert endpoint.requests == 2


async def test_slow_endpoint_delays_no_other_token(verifier: Verifier, endpoint: Endpoint) -> None:
    endpoint.answering.clear()
    waiting = asyncio.create_task(user_of(verifier, signed()))
    while not endpoint.requests:
        await asyncio.sleep(0.001)

    # a token that needs no key set is verified meanwhile
    with pytest.raises(InvalidToken):
        await user_of(verifier, "hello")
    assert not waiting.done()

    endpoint.answering.set()
    assert await waiting == "17"


async def test_client_that_leaves_while_keys_are_fetched_harms_no_other(
    verifier: Verifier, endpoint: Endpoint
) -> None:
    endpoint.answering.clear()
    leaving = asyncio.create_task(user_of(verifier, signed()))
    staying = asyncio.create_task(user_of(verifier, signed()))
    while not endpoint.requests:
        await asyncio.sleep(0.001)

    leaving.cancel()
    endpoint.answering.set()

    assert await staying == "17"
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_exception_shows_nothing_of_the_token(verifier: Verifier, endpoint: Endpoint) -> None:
    endpoint.status = 500
    text = signed()
    with pytest.raises(KeysUnavailable) as raised:
        await user_of(verifier, text)
    assert not any(part in repr(raised.value) for part in text.split("."))
