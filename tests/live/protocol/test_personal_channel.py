"""Personal channels: the service subscribes each client of a user.

docs/protocol.md, 3.2 and 3.3.
"""

from __future__ import annotations

import pytest

from tests.conftest import connection_token
from tests.live.configurations import (
    CONNECTION_LIMIT,
    ERRORS,
    MAIN,
    PERSONAL_AT_TOP,
    Connect,
    Options,
    Serve,
)

PERSONAL: Options = {
    "namespaces": [{"name": "pp", "presence": True}],
    "user_subscribe_to_personal": True,
    "user_personal_channel_namespace": "pp",
    "user_personal_single_connection": True,
}


async def test_user_is_subscribed_to_the_personal_channel(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**PERSONAL_AT_TOP)
    client = await connect(server, connected=False)
    result = await client.result("connect", {"token": connection_token(unique)})
    assert result["subs"] == {f"#{unique}": {}}
    server.publish(f"#{unique}", 1)
    assert await client.push() == {"channel": f"#{unique}", "data": {"data": 1}}


async def test_anonymous_user_has_no_personal_channel(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**PERSONAL_AT_TOP), connected=False)
    assert set(await client.result("connect", {})) == {"client", "version"}


async def test_new_connection_closes_the_other_ones_where_users_have_a_single_one(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**PERSONAL)
    old = await connect(server, user=unique)
    stranger = await connect(server, user=f"{unique}other")
    new = await connect(server, connected=False)
    result = await new.result("connect", {"token": connection_token(unique)})
    assert result["subs"] == {f"pp:#{unique}": {}}
    assert await old.closed() == CONNECTION_LIMIT
    await new.result("ping")
    await stranger.result("ping")


@pytest.mark.parametrize("user", ["{}#17", "{},17", "#{}"])
@pytest.mark.parametrize("options", [PERSONAL, PERSONAL_AT_TOP], ids=["namespace", "top level"])
async def test_user_whose_personal_channel_would_be_open_to_others_cannot_connect(
    serve: Serve, connect: Connect, unique: str, format_name: str, options: Options, user: str
) -> None:
    client = await connect(serve(**options), connected=False)
    token = connection_token(user.format(unique))
    assert await client.error("connect", {"token": token}) == ERRORS[107]


async def test_user_whose_id_holds_markers_connects_without_a_personal_channel(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    user = f"{unique}#17"
    client = await connect(serve(**MAIN), user=user)
    for channel in (f"#{user}", "#17", f"news#{user}"):
        assert await client.error("subscribe", {"channel": channel}) == ERRORS[103]
