"""Requests of the console at servers that do not mean well."""

from __future__ import annotations

import pytest

from realtime.tools import remote
from realtime.tools.remote import Remote, Unreachable
from tests.unit.tools.hostile import Serve

SHORT = 0.2
HEAD = b"HTTP/1.1 200 OK\r\n"


def test_answer_of_any_length_is_given_up(hostile: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_BODY", 100_000)
    server = hostile(lambda _: iter([HEAD + b"\r\n", *([bytes(1000)] * 1000)]))
    with pytest.raises(Unreachable, match="larger than 100000 bytes"):
        Remote(server.address).request("GET", "/", {})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", f"no answer within {SHORT:g} s"),
        (HEAD, f"no answer within {SHORT:g} s"),
        (HEAD + b"Content-Length: 9\r\n\r\nabc", f"no answer within {SHORT:g} s"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
        (HEAD + b"Content-Length: many\r\n\r\n", "does not speak HTTP"),
        (HEAD + b"X: " + b"x" * 300_000, "does not speak HTTP"),
        (b"HTTP/1.1 101 OK\r\nUpgrade: websocket\r\n\r\n", "does not speak HTTP"),
    ],
    ids=["silence", "half a head", "half a body", "other protocol", "length", "header", "upgrade"],
)
def test_answer_that_cannot_be_used_is_said(hostile: Serve, answer: bytes, reason: str) -> None:
    server = hostile(lambda _: iter([answer]))
    with pytest.raises(Unreachable, match=reason):
        Remote(server.address, SHORT).request("GET", "/", {})


def test_interim_answers_are_passed_over(hostile: Serve) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    server = hostile(lambda _: iter([interim, interim, HEAD + b"Content-Length: 2\r\n\r\nok"]))
    response = Remote(server.address).request("GET", "/", {})
    assert (response.status, response.body) == (200, b"ok")


def test_repeated_headers_and_those_of_no_encoding_are_read(hostile: Serve) -> None:
    head = HEAD + b"Server: a\r\nServer: \xff\r\nContent-Length: 0\r\n\r\n"
    server = hostile(lambda _: iter([head]))
    assert Remote(server.address).request("GET", "/", {}).header("Server") == "a, \xff"
