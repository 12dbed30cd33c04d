"""HTTP as endpoints speak it: redirects and connections. docs/protocol.md, 7.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.certificates import write_certificate
from tests.live.configurations import NAMESPACES, Connect, Serve
from tests.live.proxy.application import (
    INTERNAL_ERROR,
    Answer,
    Application,
    Request,
    ask,
    client_for,
    proxied,
    refreshing,
)
from tests.ports import refusing_port
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

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


# endpoints that cannot be reached, and TLS. docs/protocol.md, 7.1


class Site(NamedTuple):
    """A server, and the applications with TLS that it asks."""

    server: Server
    trusted: Application
    untrusted: Application


@pytest.fixture(scope="module")
def site(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """rpc: TLS as the system trusts it; publish: as it does not; the others: nobody there."""
    directories = [tmp_path_factory.mktemp("tls") for _ in range(2)]
    for directory in directories:
        write_certificate(directory)
    trusted, untrusted = (Application(directory) for directory in directories)
    server = serve(
        environment={"SSL_CERT_FILE": str(directories[0] / "certificate.pem")},
        namespaces=NAMESPACES,
        proxy_connect_endpoint=f"http://127.0.0.1:{refusing_port()}/connect",
        proxy_subscribe_endpoint="http://nobody.invalid/subscribe",
        proxy_publish_endpoint=untrusted.url("/publish"),
        proxy_rpc_endpoint=trusted.url("/rpc"),
    )
    yield Site(server, trusted, untrusted)
    trusted.stop()
    untrusted.stop()


@pytest.mark.parametrize("kind", ["connect", "subscribe", "publish"])
async def test_endpoint_that_cannot_be_reached_is_error_100_and_a_line_in_the_log(
    connect: Connect, site: Site, unique: str, kind: str
) -> None:
    client = await client_for(connect, site.server, kind)
    assert (await ask(client, kind, unique))["error"] == INTERNAL_ERROR
    wait_until(lambda: f"The {kind} endpoint http" in site.server.log)
    (line,) = [line for line in site.server.log.splitlines() if f"The {kind} endpoint" in line]
    assert " failed: " in line


async def test_certificate_that_the_system_trusts_is_accepted(
    connect: Connect, site: Site, unique: str
) -> None:
    client = await connect(site.server)
    site.trusted.answer("/rpc", {"result": {"data": "over TLS"}})
    assert (await ask(client, "rpc", unique))["result"] == {"data": "over TLS"}


async def test_certificate_that_the_system_does_not_trust_is_refused(
    connect: Connect, site: Site, unique: str
) -> None:
    client = await connect(site.server)
    assert (await ask(client, "publish", unique))["error"] == INTERNAL_ERROR
    assert site.untrusted.requests == []
    wait_until(lambda: "certificate verify failed" in site.server.log)


async def test_endpoint_that_comes_back_is_asked_again(
    own_server: Serve, connect: Connect, unique: str
) -> None:
    application = Application()
    server = own_server(proxy_rpc_endpoint=application.url("/rpc"))
    client = await connect(server)
    assert (await ask(client, "rpc", unique))["result"] == {}

    application.stop()
    assert (await ask(client, "rpc", unique))["error"] == INTERNAL_ERROR
    again = Application(port=application.server_port)

    try:
        assert (await ask(client, "rpc", unique))["result"] == {}
    finally:
        again.stop()
