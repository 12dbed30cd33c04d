"""Requests that the views for tokens refuse: forged, malformed, too large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.live.configurations import Serve
from tests.live.hooks_site import ELSEWHERE, Visitor, environment
from tests.live.lounge import ANONYMOUS, HEADERS, OPTIONS, log_in, post
from tests.server import Server

VIEWS = ["refresh", "subscribe"]
QUESTION = {"client": "C", "channels": ["$lounge:free-room"]}
MAX_BODY_BYTES = 256 * 1024
LONG = "x" * MAX_BODY_BYTES


@pytest.fixture(scope="module")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The site with private channels."""
    return serve(environment=environment(tmp_path_factory, "lounge"), **OPTIONS)


@pytest.fixture(scope="module")
def visitor(server: Server) -> Visitor:
    """Somebody whose browser others would like to use."""
    return log_in(server)[0]


def is_answered(response: httpx.Response) -> bool:
    """Whether there is a token in it; otherwise there must be none."""
    found = "ey" in response.text
    assert found == (response.status_code == 200), response.text
    return found


def headers_with(name: str, value: str | None) -> dict[str, str]:
    """The headers of client libraries with another value, or none, of one of them."""
    kept = {key: each for key, each in HEADERS.items() if key != name}
    return kept if value is None else kept | {name: value}


HEADS: list[tuple[str, str | None, int]] = [
    ("Accept", "*/*", 200),
    ("Origin", "http://127.0.0.1:{port}", 200),
    ("Origin", ELSEWHERE, 403),
    *(("X-Requested-With", value, 403) for value in (None, "", "x")),
    ("Content-Type", "application/json; charset=utf-8", 200),
    ("Content-Type", "Application/JSON", 200),
    # any page of the world can have a browser send these, with its cookies
    *(("Content-Type", value, 415) for value in (None, "", "text/plain", "application/jsonp")),
    ("Content-Type", "application/x-www-form-urlencoded", 415),
    ("Content-Type", "multipart/form-data; boundary=x", 415),
    ("Content-Type", "text/plain; a=application/json", 415),
    ("Content-Type", "text/plain, application/json", 415),
]
"""A header of a request, its value or None for none, and the status."""


@pytest.mark.parametrize(("name", "value", "status"), HEADS)
@pytest.mark.parametrize("view", VIEWS)
def test_request_is_one_of_a_script_of_this_origin(
    server: Server, visitor: Visitor, view: str, name: str, value: str | None, status: int
) -> None:
    headers = headers_with(name, value and value.format(port=server.port))
    # servers look into forms themselves
    is_form = value is not None and value.startswith("multipart")
    body = FILES if is_form else json.dumps(QUESTION).encode()
    response = post(server, view, body, visitor=visitor, headers=headers)
    assert response.status_code == status
    assert is_answered(response) is (status == 200)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("view", VIEWS)
def test_method_other_than_post_is_405(
    server: Server, visitor: Visitor, view: str, method: str
) -> None:
    url = f"/centrifuge/{view}"
    response = visitor.http.request(method, url, headers=HEADERS, json=QUESTION)
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"


FILES = b'--x\r\nContent-Disposition: form-data; name="client"\r\n\r\nC\r\n--x--\r\n'


@pytest.mark.parametrize("view", VIEWS)
def test_page_of_an_allowed_origin_is_answered(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory, view: str
) -> None:
    server = serve(environment=environment(tmp_path_factory, "lounge"), **ANONYMOUS)
    visitor, _ = log_in(server)
    headers = HEADERS | {"Origin": ELSEWHERE}
    response = post(server, view, QUESTION, visitor=visitor, headers=headers)
    assert is_answered(response)
    # what other origins may read is for the site to say
    assert not any(name.startswith("access-control-") for name in response.headers)


@pytest.mark.parametrize("headers", [HEADERS, {}], ids=["answered", "refused"])
@pytest.mark.parametrize("view", VIEWS)
def test_answer_is_kept_by_no_cache_and_no_other_origin_may_read_it(
    server: Server, visitor: Visitor, view: str, headers: dict[str, str]
) -> None:
    response = post(server, view, QUESTION, visitor=visitor, headers=headers)
    assert {"no-store", "private"} <= set(response.headers["Cache-Control"].split(", "))
    assert not any(name.startswith("access-control-") for name in response.headers)


def test_preflight_of_another_origin_is_refused(server: Server, visitor: Visitor) -> None:
    asks = {
        "Origin": ELSEWHERE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-requested-with",
    }
    response = visitor.http.options("/centrifuge/subscribe", headers=asks)
    assert response.status_code == 405
    assert not any(name.startswith("access-control-") for name in response.headers)


# bodies


def in_parts() -> Iterator[bytes]:
    """A body whose length nobody tells beforehand."""
    for _ in range(5):
        yield b"x" * (MAX_BODY_BYTES // 4)


@pytest.mark.parametrize("body", [LONG.encode() + b"x", in_parts], ids=["at once", "in parts"])
@pytest.mark.parametrize("view", VIEWS)
def test_body_larger_than_256_kib_is_413(
    server: Server, visitor: Visitor, view: str, body: bytes | Callable[[], Iterator[bytes]]
) -> None:
    response = visitor.http.post(
        f"/centrifuge/{view}", headers=HEADERS, content=body if isinstance(body, bytes) else body()
    )
    assert response.status_code == 413


MALFORMED: dict[str, Any] = {
    "nothing": b"",
    "broken": b"{",
    "two values": b"{} {}",
    "not UTF-8": b'{"client": "C", "channels": ["\xff"]}',
    "half of a pair": b'{"client": "C", "channels": ["\\ud83d"]}',
    "deep": b"[" * 50_000,
    "deep in a member": b'{"a": ' + b"[" * 50_000,
    "null": b"null",
    "list": b"[]",
    "text": b'"C"',
    "empty object": b"{}",
    "no client": {"channels": ["$a"]},
    "no channels": {"client": "C"},
    "client is a number": {"client": 1, "channels": ["$a"]},
    "client is null": {"client": None, "channels": ["$a"]},
    "client is empty": {"client": "", "channels": ["$a"]},
    "client is long": {"client": "C" * 256, "channels": ["$a"]},
    "channels is text": {"client": "C", "channels": "$a"},
    "channels is an object": {"client": "C", "channels": {"$a": 1}},
    "channels is null": {"client": "C", "channels": None},
    "channel is a number": {"client": "C", "channels": ["$lounge:free-room", 1]},
    "channel is null": {"client": "C", "channels": ["$lounge:free-room", None]},
    "channel is a list": {"client": "C", "channels": [["$lounge:free-room"]]},
    "channel is an object": {"client": "C", "channels": [{"channel": "$lounge:free-room"}]},
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_malformed_question_is_400(server: Server, visitor: Visitor, body: Any) -> None:
    response = post(server, "subscribe", body, visitor=visitor)
    assert response.status_code == 400
    assert not is_answered(response)


@pytest.mark.parametrize(("count", "status"), [(128, 200), (129, 400)])
def test_more_channels_than_a_connection_may_have_are_400(
    server: Server, visitor: Visitor, count: int, status: int
) -> None:
    """`client_channel_limit` is 128, as by default."""
    channels = [f"$lounge:free-{number}" for number in range(count)]
    response = post(server, "subscribe", {"client": "C", "channels": channels}, visitor=visitor)
    assert response.status_code == status
    if status == 200:
        assert [each["channel"] for each in response.json()["channels"]] == channels
