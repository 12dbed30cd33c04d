"""HTTP as endpoints speak it: redirects and connections. docs/protocol.md, 7.1."""

from __future__ import annotations

import pytest

from tests.live.configurations import Connect, Serve
from tests.live.proxy.application import Answer, Application, Request, ask, proxied, refreshing
from tests.ports import refusing_port
from tests.protocol_client import ProtocolClient
from tests.server import Server

# redirects, as the default of the reference server's HTTP client


@pytest.mark.parametrize("status", [307, 308])
async def test_redirect_that_keeps_the_method_is_followed_with_the_body(
    server: Server, connect: Connect, application: Application, unique: str, status: int
) -> None:
    client = await connect(server, additional_headers={"Cookie": "a=1", "X-Custom": "x"})
    application.answer("/rpc", status=status, headers={"Location": "moved?to=here"})
    application.answer("/moved", {"result": {"data": "moved"}})

    assert (await ask(client, "rpc", unique))["result"] == {"data": "moved"}

    first, second = application.requests
    assert (second.method, second.path, second.body) == ("POST", "/moved?to=here", first.body)
    assert second.headers["Content-Type"] == "application/json"
    assert (second.headers["Cookie"], second.headers["X-Custom"]) == ("a=1", "x")


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_redirect_that_makes_it_a_get_is_followed_without_the_body(
    server: Server, connect: Connect, application: Application, unique: str, status: int
) -> None:
    client = await connect(server, additional_headers={"Cookie": "a=1"})
    application.answer("/rpc", status=status, headers={"Location": application.url("/moved")})
    application.answer("/moved", {"result": {"data": "moved"}})
    assert (await ask(client, "rpc", unique))["result"] == {"data": "moved"}
    second = application.requests[1]
    assert (second.method, second.body) == ("GET", b"")
    assert "Content-Type" not in second.headers
    assert second.headers["Cookie"] == "a=1"


async def test_redirect_to_another_host_gets_no_cookies_and_no_authorization(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(
        server, additional_headers={"Cookie": "a=1", "Authorization": "Bearer b", "X-Custom": "x"}
    )
    elsewhere = application.url("/moved").replace("127.0.0.1", "localhost")
    back = {"Location": application.url("/back")}
    application.answer("/rpc", status=307, headers={"Location": elsewhere})
    application.answer("/moved", status=307, headers=back)

    assert (await ask(client, "rpc", unique))["result"] == {}

    first, *others = application.requests
    assert (first.headers["Cookie"], first.headers["Authorization"]) == ("a=1", "Bearer b")
    assert [request.path for request in others] == ["/moved", "/back"]
    for request in others:
        assert "Cookie" not in request.headers
        assert "Authorization" not in request.headers
        assert request.headers["X-Custom"] == "x"


@pytest.mark.parametrize(("redirects", "succeeds"), [(9, True), (10, False)])
async def test_at_most_nine_redirects_are_followed(
    client: ProtocolClient, application: Application, unique: str, redirects: int, succeeds: bool
) -> None:
    def redirect(request: Request) -> Answer:
        number = int(request.path.partition("?")[2] or 0)
        if number == redirects:
            return Answer()
        return Answer(status=307, headers={"Location": f"/rpc?{number + 1}"})

    application.answers["/rpc"] = redirect

    assert ("result" in await ask(client, "rpc", unique)) is succeeds

    assert len(application.requests) == 10


# connections


async def test_connection_is_used_again(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    one, other = await connect(server), await connect(server)
    await ask(one, "rpc", unique)
    await ask(other, "rpc", unique)
    await ask(one, "subscribe", unique)
    assert len({request.port for request in application.requests}) == 1


async def test_cookies_of_an_answer_are_not_kept_for_the_next_client(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    one, other = await connect(server), await connect(server)
    application.answer("/rpc", headers={"Set-Cookie": "session=of-one; Path=/"})
    await ask(one, "rpc", unique)
    await ask(other, "rpc", unique)
    await ask(one, "rpc", unique)
    assert ["Cookie" in request.headers for request in application.requests] == [False] * 3


async def test_credentials_and_query_of_the_url_are_sent(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(serve(**refreshing(application)))
    assert (await ask(client, "rpc", unique))["result"] == {}
    request = application.only_request()
    assert request.path == "/rpc?key=in-the-query"
    # operator:in-the-url (RFC 7617)
    assert request.headers["Authorization"] == "Basic b3BlcmF0b3I6aW4tdGhlLXVybA=="
    assert request.headers["Host"] == f"127.0.0.1:{application.server_port}"


async def test_authorization_of_the_client_wins_over_credentials_of_the_url(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(
        serve(**refreshing(application)), additional_headers={"Authorization": "Bearer b"}
    )
    await ask(client, "rpc", unique)
    assert application.only_request().headers.get_all("Authorization") == ["Bearer b"]


async def test_proxy_of_the_environment_is_not_used(
    own_server: Serve, connect: Connect, application: Application, unique: str
) -> None:
    nowhere = f"http://127.0.0.1:{refusing_port()}"
    environment = {"HTTP_PROXY": nowhere, "http_proxy": nowhere, "ALL_PROXY": nowhere}
    client = await connect(own_server(environment=environment, **proxied(application)))
    assert (await ask(client, "rpc", unique))["result"] == {}
