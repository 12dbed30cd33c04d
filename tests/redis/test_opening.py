"""Opening connections: credentials, unix sockets, TLS."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import hiredis
import pytest

from realtime.errors import EngineUnavailable
from realtime.redis.blocking import BlockingRedis
from realtime.redis.connection import Connection
from realtime.redis.hosts import Timeouts
from tests.redis.conftest import TlsProxy
from tests.redis.listening import Listener
from tests.redis.scripted_server import OK, ScriptedServer
from tests.redis_server import RedisServer

PASSWORD = "not-for-logs"

Entry = dict[str, Any]
Ask = Callable[..., Awaitable[Any]]


# credentials


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A Redis with a password, and a user without the right to name a connection."""
    server = RedisServer(tmp_path_factory.mktemp("redis"), password=PASSWORD).start()
    with server.client() as client:
        client.execute_command(
            "ACL", "SETUSER", "ann", "on", f">{PASSWORD}2", "~*", "&*", "+@all", "-client"
        )
    yield server
    server.kill()


async def test_password_is_accepted(ask: Ask, guarded: RedisServer) -> None:
    assert await ask(guarded.url, "PING") == b"PONG"


async def test_user_without_the_right_to_name_the_connection_is_accepted(
    ask: Ask, guarded: RedisServer
) -> None:
    url = f"redis://ann:{PASSWORD}2@127.0.0.1:{guarded.port}"
    assert await ask(url, "ACL", "WHOAMI") == b"ann"


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [
        pytest.param({"password": f"{PASSWORD}3"}, "WRONGPASS|invalid", id="wrong-password"),
        pytest.param({"username": "bob", "password": PASSWORD}, "WRONGPASS|invalid", id="user"),
        pytest.param({}, "NOAUTH|Authentication required", id="none"),
    ],
)
async def test_refusal_of_credentials_names_the_reason_and_hides_them(
    ask: Ask,
    guarded: RedisServer,
    caplog: pytest.LogCaptureFixture,
    credentials: Entry,
    reason: str,
) -> None:
    caplog.set_level(logging.DEBUG)

    with pytest.raises(EngineUnavailable, match=reason) as caught:
        await ask({"host": "127.0.0.1", "port": guarded.port, **credentials}, "GET", "x")

    text = str(caught.value)
    assert text.startswith(label := f"redis://127.0.0.1:{guarded.port}/0: ")
    assert text.count(label) == 1
    assert PASSWORD not in text + caplog.text


async def test_password_that_redis_repeats_is_hidden(
    ask: Ask, script_server: Callable[..., Awaitable[ScriptedServer]]
) -> None:
    """A Redis in which AUTH was renamed answers with the arguments of the unknown command."""
    server = await script_server(
        lambda command: (
            f"-ERR unknown command `AUTH`, with args beginning with: `{PASSWORD}`\r\n".encode()
            if command[0] == b"AUTH"
            else OK
        )
    )

    with pytest.raises(EngineUnavailable, match=r"unknown command.*\*\*\*") as caught:
        await ask(server.url.replace("//", f"//:{PASSWORD}@"), "PING")

    assert PASSWORD not in str(caught.value)


async def test_server_that_sends_everything_back_is_refused_and_the_password_hidden(
    script_server: Callable[..., Awaitable[ScriptedServer]],
    open_connection: Callable[..., Connection],
) -> None:
    """As a socket does that was connected to itself, in search of a server that is away."""
    server = await script_server(lambda command: hiredis.pack_command(tuple(command)))
    password = "it's\\not"
    with pytest.raises(EngineUnavailable, match="AUTH refused: unexpected reply") as caught:
        await open_connection({"address": server.url, "password": password}).execute("PING")
    assert "not" not in str(caught.value)


async def test_db_is_selected(ask: Ask, redis_server: RedisServer, unique: str) -> None:
    url = redis_server.url.replace("/0", "/3")
    await ask(url, "SET", unique, "1")
    assert await ask(url, "GET", unique) == b"1"
    assert await ask(redis_server.url, "GET", unique) is None


async def test_db_that_does_not_exist_is_refused(ask: Ask, redis_server: RedisServer) -> None:
    with pytest.raises(EngineUnavailable, match=r"DB index"):
        await ask(redis_server.url.replace("/0", "/999"), "PING")


async def test_connection_has_a_name_for_operators(connection: Connection) -> None:
    assert await connection.execute("CLIENT", "GETNAME") == b"realtime"


# unix sockets


async def test_unix_socket(ask: Ask, own_redis: Callable[..., RedisServer], tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    own_redis(arguments=["--unixsocket", str(path)], password=PASSWORD)
    assert await ask({"path": str(path), "password": PASSWORD}, "PING") == b"PONG"
    assert await ask(f"unix://:{PASSWORD}@{path}?db=1", "PING") == b"PONG"


async def test_unix_socket_that_is_not_there(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match=r"^unix:///.*No such file"):
        await ask(f"unix://{tmp_path}/r.sock", "PING")


# TLS


async def test_tls_with_a_known_certificate(ask: Ask, tls_proxy: TlsProxy) -> None:
    entry = {
        "address": tls_proxy.url,
        "ssl_ca_certs": tls_proxy.certificate,
        "ssl_check_hostname": False,
    }

    assert await ask(entry, "PING") == b"PONG"
    assert tls_proxy.connections == 1


async def test_tls_without_verification(ask: Ask, tls_proxy: TlsProxy) -> None:
    assert await ask(f"{tls_proxy.url}?ssl_cert_reqs=none", "PING") == b"PONG"


@pytest.mark.parametrize("known", [False, True], ids=["unknown-issuer", "other-host"])
async def test_tls_refuses_a_certificate_that_is_not_valid(
    ask: Ask, tls_proxy: TlsProxy, known: bool
) -> None:
    options = {"ssl_ca_certs": tls_proxy.certificate} if known else {}
    with pytest.raises(EngineUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
        await ask({"address": tls_proxy.url, **options}, "PING")


async def test_certificate_file_that_is_not_there(ask: Ask, tls_proxy: TlsProxy) -> None:
    with pytest.raises(EngineUnavailable, match="No such file"):
        await ask({"address": tls_proxy.url, "ssl_ca_certs": "/none.pem"}, "PING")


@pytest.mark.parametrize("value", ["\0", 5])
async def test_invalid_certificate_file(
    open_connection: Callable[..., Connection],
    listen: Callable[..., Listener],
    tls_proxy: TlsProxy,
    value: object,
) -> None:
    entry = {"address": tls_proxy.url, "ssl_ca_certs": value}
    with pytest.raises(EngineUnavailable, match="no connection: "):
        await open_connection(entry).execute("PING")
    with pytest.raises(EngineUnavailable, match="no connection: "):
        await listen(entry, Timeouts(answer=0.3)).subscribe("x")


@pytest.mark.filterwarnings(
    # redis-py leaves its socket to the garbage collector then
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("value", ["\0", 5])
async def test_invalid_certificate_file_in_a_thread(
    open_blocking: Callable[..., BlockingRedis], tls_proxy: TlsProxy, value: object
) -> None:
    client = open_blocking({"address": tls_proxy.url, "ssl_ca_certs": value})
    with pytest.raises(EngineUnavailable):
        await asyncio.to_thread(client.execute, "PING")
