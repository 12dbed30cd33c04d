"""Endpoints that cannot be reached, and TLS. docs/protocol.md, 7.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.certificates import write_certificate
from tests.live.configurations import NAMESPACES, Connect, Serve
from tests.live.proxy.application import INTERNAL_ERROR, Application, ask, client_for
from tests.ports import refusing_port
from tests.server import Server, wait_until


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
