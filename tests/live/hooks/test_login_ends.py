"""The end of a login closes its connections at once, in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.live.configurations import FORCED, Connect, Serve
from tests.live.hooks_site import OPTIONS, PASSWORD, Visitor, create_user, do, environment
from tests.server import Server

EXPIRED = (3005, '{"reason":"expired","reconnect":true}')


@pytest.fixture(scope="module", params=["one process", "two processes"])
def servers(
    request: pytest.FixtureRequest, serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Server, Server]:
    """Where users and sessions change, and where their clients are connected."""
    made = environment(tmp_path_factory)
    if request.param == "one process":
        server = serve(environment=made, **OPTIONS)
        return server, server
    shared_cluster = request.getfixturevalue("shared_cluster")
    one, other = shared_cluster(environment=made, **OPTIONS)
    return one, other


@pytest.fixture
def enter(connect: Connect, servers: tuple[Server, Server]) -> Callable[..., Any]:
    """Log in at the one server, and connect to the other: `await enter(username)`."""

    async def enter(username: str) -> tuple[Visitor, Any]:
        visitor = Visitor(servers[0], username)
        return visitor, await join(connect, servers[1], visitor)

    return enter


async def join(connect: Connect, server: Server, visitor: Visitor) -> Any:
    """Connect with a visitor's session."""
    headers = {"Cookie": visitor.headers["Cookie"], "Origin": server.address}
    return await connect(server, user=None, additional_headers=headers)


Servers = tuple[Server, Server]
Enter = Callable[..., Any]


async def test_logout_closes_all_connections_of_the_session(
    servers: Servers, enter: Enter, connect: Connect, format_name: str
) -> None:
    username, _ = create_user(servers[0])
    visitor, client = await enter(username)
    other_tab = await join(connect, servers[0], visitor)
    visitor.log_out()
    assert await client.closed() == FORCED
    assert await other_tab.closed() == FORCED


async def test_logout_leaves_another_session_of_the_user_and_other_users_alone(
    servers: Servers, enter: Enter
) -> None:
    (username, _), (somebody, _) = create_user(servers[0]), create_user(servers[0])
    visitor, client = await enter(username)
    _, on_the_phone = await enter(username)
    _, somebody_else = await enter(somebody)
    visitor.log_out()
    assert await client.closed() == FORCED
    await on_the_phone.quiet()
    await somebody_else.quiet()


async def test_logout_in_an_asynchronous_view_closes_the_connection(
    servers: Servers, enter: Enter
) -> None:
    username, _ = create_user(servers[0])
    visitor, client = await enter(username)
    assert visitor.http.post("/async-logout").status_code == 204
    assert await client.closed() == FORCED


async def test_own_password_change_closes_connections_and_the_visitor_stays_logged_in(
    servers: Servers, enter: Enter, connect: Connect
) -> None:
    username, _ = create_user(servers[0])
    visitor, client = await enter(username)
    _, elsewhere = await enter(username)

    new = PASSWORD + "2"
    visitor.send("/password", old_password=PASSWORD, new_password1=new, new_password2=new)

    # with reconnect: the page's own session goes on, with a new cookie
    assert await client.closed() == EXPIRED
    assert await elsewhere.closed() == EXPIRED
    assert visitor.who() == username
    await (await join(connect, servers[1], visitor)).quiet()


@pytest.mark.parametrize(
    "action", ["change_password", "deactivate", "delete", "delete_sessions_of"]
)
async def test_what_ends_all_logins_of_a_user_closes_their_connections(
    servers: Servers, enter: Enter, connect: Connect, action: str
) -> None:
    (username, _), (somebody, _) = create_user(servers[0]), create_user(servers[0])
    visitor, client = await enter(username)
    _, on_the_phone = await enter(username)
    _, somebody_else = await enter(somebody)

    do(servers[0], action, username=username)

    assert await client.closed() == EXPIRED
    assert await on_the_phone.closed() == EXPIRED
    await somebody_else.quiet()
    # who comes back, as the advice says, is nobody any more
    headers = {"Cookie": visitor.headers["Cookie"]}
    again = await connect(servers[1], user=None, connected=False, additional_headers=headers)
    await again.send("connect")
    assert (await again.closed())[0] == 3003


async def test_deletion_of_a_session_closes_its_connections_alone(
    servers: Servers, enter: Enter
) -> None:
    username, _ = create_user(servers[0])
    visitor, client = await enter(username)
    _, on_the_phone = await enter(username)
    do(servers[0], "delete_session", key=visitor.session_key)
    assert await client.closed() == EXPIRED
    await on_the_phone.quiet()


@pytest.mark.parametrize("change", ["rolled back", "saved", "another login"])
async def test_change_that_ends_no_login_closes_nothing(
    servers: Servers, enter: Enter, change: str
) -> None:
    username, _ = create_user(servers[0])
    _, client = await enter(username)
    match change:
        case "rolled back":
            do(servers[0], "deactivate", username=username, rolled_back=True)
        case "saved":
            do(servers[0], "rename", username=username, first_name="Ann")
        case _:  # Django saves the user then, for `last_login`
            Visitor(servers[0], username)
    await client.quiet()
    do(servers[0], "deactivate", username=username)
    assert await client.closed() == EXPIRED
