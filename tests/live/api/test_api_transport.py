"""The server API as HTTP: paths, verbs, statuses, content types, bodies of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from realtime.tools import openapi
from tests.live.api_client import (
    AUTHORIZED,
    BOTH,
    SHELLS,
    Answer,
    connection,
    line,
    post,
    send,
    start,
)
from tests.live.configurations import Serve
from tests.server import Server

BODY_LIMIT = 2621440
"""Django's default of DATA_UPLOAD_MAX_MEMORY_SIZE, bytes."""


@pytest.fixture(params=SHELLS)
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return start(serve, request.param)


def kept(server: Server, channel: str) -> list[object]:
    """The data of what was published into a channel."""
    publications = server.api("history", channel=channel)["result"]["publications"]
    return [publication["data"] for publication in publications]


def assert_bad_request(answer: Answer) -> None:
    assert (answer.status, answer.body) == (400, b"Bad Request\n")
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["/api/", "/api/nothing", "/API", "/apis"])
def test_only_the_exact_path_is_the_api(server: Server, path: str) -> None:
    assert post(server, line("channels"), path=path).status == 404


VERBS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("headers", [AUTHORIZED, {}], ids=["right key", "no key"])
def test_other_verbs_than_post_get_405_before_the_key_is_looked_at(
    server: Server, verb: str, headers: dict[str, str]
) -> None:
    answer = post(server, line("channels"), method=verb, headers=headers)
    assert (answer.status, answer.body) == (405, b"")
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_key_is_looked_at_before_the_body(server: Server) -> None:
    for body in (b"{", b"", b" " * (BODY_LIMIT + 1)):
        assert post(server, body, headers={}).status == 401


UNDECODABLE = {
    "empty": b"",
    "cut off": b'{"method":"channels"',
    "word": b"hello",
    "not UTF-8": b"\xff",
    "array": b'[{"method":"channels"}]',
    "string": b'"channels"',
    "number": b"8",
    "boolean": b"true",
    "single quotes": b"{'method':'channels'}",
    "trailing comma": b'{"method":"channels",}',
    "something after a command": b'{"method":"channels"} x',
    "second line broken": b'{"method":"channels"}\n{"method":\n',
    "third line an array": b'{"method":"channels"}\n{"method":"channels"}\n[]\n',
    "unknown method": b'{"method":"nope"}',
    "empty method": b'{"method":""}',
    "number of a method as a string": b'{"method":"8"}',
    "method with a space": b'{"method":" channels"}',
    "boolean method": b'{"method":true}',
    "fractional method": b'{"method":8.0}',
    "object as method": b'{"method":{}}',
    "string id": b'{"id":"1","method":"channels"}',
    "negative id": b'{"id":-1,"method":"channels"}',
    "fractional id": b'{"id":1.5,"method":"channels"}',
    "id beyond 32 bits": b'{"id":4294967296,"method":"channels"}',
    "deeply nested": b'{"method":"channels","x":' + b"[" * 100_000,
}


@pytest.mark.parametrize("body", UNDECODABLE.values(), ids=UNDECODABLE)
def test_undecodable_body_gets_400(server: Server, body: bytes) -> None:
    assert_bad_request(post(server, body))


BROKEN_ENDS = {
    "broken JSON": b"{",
    "array": b"[]",
    "unknown method": b'{"method":"nope"}',
    "not UTF-8": b"\xff",
}


@pytest.mark.parametrize("end", BROKEN_ENDS.values(), ids=BROKEN_ENDS)
@pytest.mark.parametrize("separator", [b"\n", b" ", b""], ids=["line", "space", "nothing"])
def test_commands_before_a_broken_one_are_executed_although_the_answer_is_a_bare_400(
    server: Server, unique: str, end: bytes, separator: bytes
) -> None:
    channel = f"kept:{unique}"
    commands = [line("publish", {"channel": channel, "data": n}, id=n).strip() for n in (1, 2)]
    answer = post(server, separator.join([*commands, end]))
    assert_bad_request(answer)
    assert kept(server, channel) == [1, 2]


@pytest.mark.parametrize("body", [b" ", b"\n", b" \t\r\n\n "], ids=["space", "line", "mixed"])
def test_body_of_white_space_gets_an_empty_200(server: Server, body: bytes) -> None:
    answer = post(server, body, headers={**AUTHORIZED, "Content-Type": "application/json"})
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Type"] == "application/json"


CONTENT_TYPES = [
    *("application/json", "application/json; charset=utf-8", "text/plain"),
    *("Application/X-Anything;  a=1", "application/x-www-form-urlencoded", "nonsense"),
]


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_content_type_is_not_checked_and_comes_back_as_it_was(
    server: Server, unique: str, content_type: str
) -> None:
    body = line("publish", {"channel": unique, "data": 1})
    answer = post(server, body, headers={**AUTHORIZED, "Content-Type": content_type})
    assert (answer.status, answer.body) == (200, b'{"result":{}}\n')
    assert answer.headers["Content-Type"] == content_type


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "nonsense"])
@pytest.mark.parametrize("query", ["format=xml", "format=json", "version=2", "x=%FF"])
def test_what_the_request_accepts_and_other_parameters_do_not_matter(
    server: Server, accept: str, query: str
) -> None:
    command = line("presence", {"channel": "kept:"})
    answer = post(server, command, path=f"/api?{query}", headers={**AUTHORIZED, "Accept": accept})
    assert (answer.status, answer.body) == (200, b'{"result":{"presence":{}}}\n')
    assert answer.headers["Content-Type"] == ""


def test_connection_is_of_use_after_every_kind_of_answer(server: Server) -> None:
    with connection(server) as opened:
        statuses = [
            send(opened, line("channels"), method="PUT").status,
            send(opened, line("channels"), headers={}).status,
            send(opened, b"{").status,
            send(opened, b"").status,
            send(opened, b"\n").status,
            send(opened, line("channels")).status,
        ]

    assert statuses == [405, 401, 400, 400, 200, 200]


def test_body_as_large_as_django_permits_is_read(server: Server) -> None:
    command = line("presence", {"channel": "kept:"})
    answer = post(server, command + b" " * (BODY_LIMIT - len(command)))
    assert (answer.status, answer.body) == (200, b'{"result":{"presence":{}}}\n')


def in_parts(size: int) -> Iterator[bytes]:
    """A body of white space, in parts."""
    while size > 0:
        part = min(size, 65536)
        size -= part
        yield b" " * part


def test_larger_body_gets_413(server: Server) -> None:
    assert post(server, b" " * (BODY_LIMIT + 1)).status == 413


def test_larger_body_in_chunks_gets_413(server: Server) -> None:
    assert post(server, in_parts(BODY_LIMIT + 1)).status == 413


@pytest.mark.parametrize("path", ["/api", "/api/publish"])
@pytest.mark.parametrize(
    ("status", "request_of_it"),
    [
        (400, {"body": b"{"}),
        (401, {"headers": {}}),
        (405, {"method": "PUT"}),
        (413, {"body": b" " * (BODY_LIMIT + 1)}),
    ],
)
def test_refusals_have_the_content_of_the_document(
    server: Server, path: str, status: int, request_of_it: dict[str, Any]
) -> None:
    answer = post(server, path=path, **request_of_it)
    described = openapi.document("1")["paths"][path]["post"]["responses"][str(status)]["content"]
    sent = answer.headers.get("Content-Type", "").partition(";")[0]
    assert (answer.status, bool(answer.body)) == (status, bool(described))
    assert sent in described if described else not sent


def test_body_in_chunks_is_read(server: Server) -> None:
    command = line("presence", {"channel": "kept:"})
    answer = post(server, iter([command[:7], command[7:11], command[11:]]))
    assert (answer.status, answer.body) == (200, b'{"result":{"presence":{}}}\n')


@pytest.mark.parametrize("shell", BOTH)
def test_versions_of_the_site_s_own_api_are_not_asked_for(serve: Serve, shell: str) -> None:
    shells = SHELLS[shell]
    settings = {"DJANGO_SETTINGS_MODULE": "tests.site.settings_versioned"}
    server = serve(**{**shells, "environment": {**shells.get("environment", {}), **settings}})
    answer = post(server, line("channels"))
    assert (answer.status, answer.body) == (200, b'{"result":{"channels":[]}}\n')
