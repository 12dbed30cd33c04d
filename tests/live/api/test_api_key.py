"""The key of the server API: in the header or in the query, and the options about it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import pytest

from tests.live.api_client import AUTHORIZED, BOTH, SHELLS, line, post, start
from tests.live.configurations import Serve
from tests.server import API_KEY, Server

COMMAND = line("presence", {"channel": "kept:"})
WRONG = {"Authorization": "apikey wrong"}


@pytest.fixture(params=SHELLS)
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return start(serve, request.param)


@pytest.mark.parametrize(
    ("query", "headers", "is_right"),
    [
        ("", {"Authorization": f"APIKEY   {API_KEY}"}, True),
        (f"?api_key={API_KEY}&api_key=wrong", WRONG, True),
        ("?api_key=wrong", AUTHORIZED, True),
        ("", {"Authorization": "apikey \xe9"}, False),
        ("?api_key=%FF", WRONG, False),
        ("", {}, False),
    ],
)
def test_key_is_in_the_header_or_in_the_query(
    server: Server, query: str, headers: Mapping[str, str], is_right: bool
) -> None:
    answer = post(server, COMMAND, path=f"/api{query}", headers=headers)
    expected = (200, b'{"result":{"presence":{}}}\n') if is_right else (401, b"")
    assert (answer.status, answer.body) == expected
    assert answer.headers["WWW-Authenticate"] is None


def test_key_in_the_body_is_not_accepted(server: Server) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert post(server, f"api_key={API_KEY}".encode(), headers=headers).status == 401


# options


SPECIAL_KEY = "k+y/&=%41éà"
"""The UTF-8 of its last character ends with a byte that is a no-break space in Latin-1."""


@pytest.mark.parametrize("shell", BOTH)
def test_key_of_any_characters_is_accepted(serve: Serve, shell: str) -> None:
    server = start(serve, shell, api_key=SPECIAL_KEY)
    answer = post(server, line("info"), path=f"/api?api_key={quote(SPECIAL_KEY)}", headers={})
    assert answer.status == 200
    utf_8 = f"apikey {SPECIAL_KEY}".encode().decode("latin-1")  # headers travel as Latin-1
    assert post(server, line("info"), headers={"Authorization": utf_8}).status == 200


@pytest.mark.parametrize("shell", ["asgi-uvicorn", "view-uvicorn"])
def test_key_with_the_byte_of_a_next_line_is_accepted_in_the_header(
    serve: Serve, shell: str
) -> None:
    # the UTF-8 of Å ends with 0x85; daphne itself refuses headers with that byte
    server = start(serve, shell, api_key="Åà-Å")
    utf_8 = "apikey Åà-Å".encode().decode("latin-1")
    assert post(server, line("info"), headers={"Authorization": utf_8}).status == 200
    wrong = utf_8[:-1] + "x"
    assert post(server, line("info"), headers={"Authorization": wrong}).status == 401


@pytest.mark.parametrize("shell", BOTH)
def test_without_the_option_api_key_every_request_is_refused(serve: Serve, shell: str) -> None:
    answer = post(start(serve, shell, api_key=""), line("info"), path="/api?api_key=", headers={})
    assert (answer.status, answer.body) == (401, b"")


@pytest.mark.parametrize("shell", BOTH)
@pytest.mark.parametrize("headers", [{}, WRONG], ids=["no header", "wrong key"])
def test_api_insecure_removes_the_key_and_no_other_rule(
    serve: Serve, shell: str, headers: Mapping[str, str]
) -> None:
    server = start(serve, shell, api_insecure=True, api_key="")
    assert post(server, line("info"), headers=headers).status == 200
    assert post(server, line("info"), method="GET", headers=headers).status == 405


@pytest.mark.parametrize("shell", BOTH)
@pytest.mark.parametrize("verb", ["POST", "GET"])
def test_disabled_api_is_not_found(serve: Serve, shell: str, verb: str) -> None:
    assert post(start(serve, shell, api_disable=True), line("info"), method=verb).status == 404


def test_key_in_the_query_is_not_written_into_the_log(own_server: Serve) -> None:
    server = own_server(server="realtime")
    accepted = post(server, line("info"), path=f"/api?api_key={API_KEY}", headers={})
    refused = post(server, line("info"), path=f"/api?api_key={API_KEY}x", headers={})
    server.stop()  # after which the log is complete
    assert (accepted.status, refused.status) == (200, 401)
    assert "Listening" in server.log
    assert API_KEY not in server.log
