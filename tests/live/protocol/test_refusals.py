"""What a command of a client is refused with, on the wire: rows of tables, in the order of checks.

docs/protocol.md, 1.2, 1.3, 3.1, 3.6, 3.15 and 3.16. All rights: tests/unit/test_permissions.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token, subscription_token
from tests.live.configurations import (
    BAD_REQUEST,
    ERRORS,
    INSECURE,
    INVALID_TOKEN,
    LIMITED,
    MAIN,
    PERSONAL_AT_TOP,
    TOKEN_EXPIRED,
    Connect,
    Options,
    Serve,
)
from tests.live.signing import sign
from tests.protocol_client import ProtocolClient

LONG = "a" * 251
READ = ("presence", "presence_stats", "history")
ACCEPTED = (
    *("plain", "*", "a&b", "a/b", "a b", "a\nb", ":x", "::a", "ns:", "ns:$a", "a#17", "a#17,18"),
    *("a#18,17", "#17", "#17,", "ns:a#17", "proxied:a#17", LONG + "aaaa"),
)
NAMES = {
    107: ("é", "日本", "é" * 127 + "a"),
    102: ("nope:a", "$nope:a", "nope:a#17", "nope:a#18", "ns#17:a", "a#ns:17"),
    103: (
        *("$", "$p", "$ns:a", "a#18", "a#", "a#17#18", "a#18#17", "#18#17", "ns:#18#17", "a#17 "),
        *("proxied:a#18", "server_side:a"),
    ),
    106: ("nope:" + LONG, LONG + "aaaaa"),
    108: ("proxied:a",),
}
"""Code → names to which user 17 may not subscribe."""

USER = [
    *(("subscribe", name, code) for code, names in NAMES.items() for name in names),
    *((method, "open:é", 107) for method in ("publish", *READ)),
    *((method, "nope:a", 102) for method in ("publish", *READ)),
    *(
        (method, name, 106)
        for method in ("publish", *READ)
        for name in ("open:" + LONG, 239 * LONG)
    ),
    *(("publish", name, 103) for name in ("plain", "ns:a", "closed:a", "members:a")),
    *(("publish", f"proxied_{name}:a", 103) for name in ("closed", "members")),
    ("publish", "proxied_publish:a", 108),
    *((method, name, 108) for method in READ for name in ("ns:a", "hidden:a")),
    *(("history", name, 108) for name in ("size_only:a", "lifetime_only:a", "present:a")),
    *(("history", name, 103) for name in ("kept:a", "$kept:a", "kept:a#18")),
    *((method, "kept:a", 108) for method in READ[:2]),
    *((m, name, 103) for m in READ[:2] for name in ("present:a", "$present:a", "present:a#18")),
    ("rpc", "", 108),
]
ANONYMOUS = [
    ("subscribe", "nope:a", 102),
    *(("subscribe", name, 103) for name in ("anonymous:a#", "anonymous:a#,17", "anonymous:a#17")),
    *(("subscribe", name, 103) for name in ("proxied:a", "ns:a", "$ns:a")),
]
OPENED = [
    *(("subscribe", name, 103) for name in ("$p", "a#18", "server_side:a")),
    ("subscribe", "nope:a", 102),
    ("subscribe", "proxied:a", 108),
    ("publish", "closed:a", 103),
]


async def codes(client: ProtocolClient, rows: list[tuple[str, str, int]]) -> list[Any]:
    """The rows with the codes that the client gets; the right message is part of the error."""
    found: list[Any] = []
    for method, channel, _ in rows:
        params: dict[str, Any] = {"channel": channel} if channel else {}
        if method == "publish":
            params["data"] = 1
        reply = await client.call(method, params)
        code = reply.get("error", {}).get("code")
        assert reply.get("error") == ERRORS.get(code)
        found.append((method, channel, code))
    return found


@pytest.mark.parametrize(
    ("options", "user", "rows"),
    [(MAIN, "17", USER), (MAIN, "", ANONYMOUS), (INSECURE, "17", OPENED)],
    ids=["user", "anonymous", "insecure"],
)
async def test_command_is_refused(
    serve: Serve,
    connect: Connect,
    format_name: str,
    options: Options,
    user: str,
    rows: list[tuple[str, str, int]],
) -> None:
    client = await connect(serve(**options), user=user)
    assert await codes(client, rows) == rows


async def test_name_is_accepted(serve: Serve, connect: Connect, format_name: str) -> None:
    client = await connect(serve(**MAIN), user="17")
    for channel in ACCEPTED:
        assert await client.result("subscribe", {"channel": channel}) == {}
        assert await client.error("subscribe", {"channel": channel}) == ERRORS[105]
    for channel in ("$open:a", "open:a#18"):
        assert await client.result("publish", {"channel": channel, "data": 1}) == {}
    for channel in ("nope:a", "a" * 256, "$p", "a#18"):
        assert await client.result("unsubscribe", {"channel": channel}) == {}


async def test_subscriber_is_refused_what_is_off_and_what_only_subscribers_may(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    names = {name: f"{name}:{unique}" for name in ("ns", "hidden", "recover", "members")}
    names["proxied_members"] = f"proxied_members:{unique}"
    for channel in names.values():
        await client.result("subscribe", {"channel": channel})
    off = [(method, names[name], 108) for method in READ for name in ("ns", "hidden")]
    assert await codes(client, off) == off
    rows = [("publish", names["proxied_members"], 108)]
    assert await codes(client, rows) == rows
    open_ = [(method, names["recover"], None) for method in READ]
    open_.append(("publish", names["members"], None))
    assert await codes(client, open_) == open_  # type: ignore[arg-type]
    for channel in names.values():
        await client.result("unsubscribe", {"channel": channel})
    closed = [(method, channel, 103) for method, channel, _ in open_]
    assert await codes(client, closed) == closed


async def test_token_comes_after_rights_and_subscriptions(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server = serve(**MAIN)
    for user, channel in (("17", "$server_side:a"), ("", "$ns:a"), ("17", "$a#18")):
        client = await connect(server, user=user)
        token = subscription_token(client.client, channel, ttl=-10)
        params = {"channel": channel, "token": token}
        assert await client.error("subscribe", params) == ERRORS[103]
    for channel in (f"${unique}", f"$proxied:{unique}"):
        token = subscription_token(client.client, channel)
        assert await client.result("subscribe", {"channel": channel, "token": token}) == {}
        assert await client.error("subscribe", {"channel": channel}) == ERRORS[105]


async def test_channel_limit_comes_before_the_namespace(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    names = [f"{unique}{n}" for n in range(3)]
    server = serve(**LIMITED)
    client = await connect(server, user=unique)
    for channel in names[:2]:
        await client.result("subscribe", {"channel": channel})
    rows = [("subscribe", channel, 106) for channel in (names[2], names[0], "nope:a")]
    assert await codes(client, rows) == rows
    await client.result("unsubscribe", {"channel": names[0]})
    assert await client.result("subscribe", {"channel": names[2]}) == {}
    await client.send("subscribe", {"channel": ""})
    assert await client.closed() == BAD_REQUEST
    # what a token brings may be more, and counts
    client = await connect(server, token=connection_token(unique, channels=names))
    assert await client.error("subscribe", {"channel": unique}) == ERRORS[106]


BAD_CHANNEL = ("5", "[]", "{}", '{"channel":5}', '{"channel":""}')
BAD = {
    "connect": (
        *('{"token":5}', '{"subs":[]}', '{"subs":{"a":5}}', '{"subs":{"a":{"offset":-1}}}'),
        *('{"name":1}', "[]", '"x"'),
    ),
    **dict.fromkeys(("subscribe", "unsubscribe", "sub_refresh", *READ), BAD_CHANNEL),
    "publish": (
        *("5", "[]", "{}", '{"channel":5,"data":1}', '{"channel":"","data":1}', '{"data":1}'),
        *('{"channel":"open:a"}', '{"channel":"nope:a"}', '{"channel":"closed:a"}'),
    ),
    "rpc": ("5", "[]", '{"method":5}'),
    "refresh": ("5", '{"token":5}', "[]", '{"token":""}', "{}"),
}
BAD_PROTOBUF = {
    "connect": (b"\x0a\x05ab",),
    "refresh": (b"", b"\x0a\x00", b"\x0a\x05ab"),
    "publish": tuple(
        b"\x0a%c%b" % (len(name), name) for name in (b"open:a", b"nope:a", b"closed:a")
    ),
    **dict.fromkeys(("subscribe", *READ), (b"\x0a\x00",)),
}


@pytest.mark.parametrize("method", BAD)
async def test_params_are_a_bad_request(serve: Serve, connect: Connect, method: str) -> None:
    server = serve(**INSECURE if method == "connect" else MAIN)
    rows = [("json", params.encode()) for params in BAD[method]]
    rows += [("protobuf", params) for params in BAD_PROTOBUF.get(method, ())]
    for format_name, params in rows:
        client = await connect(server, connected=method != "connect", format_name=format_name)
        await client.send_params(method, params)
        assert await client.closed() == BAD_REQUEST, params


@pytest.mark.parametrize(
    ("options", "token", "answer"),
    [
        *((options, "no.token.atall", INVALID_TOKEN) for options in (MAIN, INSECURE)),
        (PERSONAL_AT_TOP, "no.token.atall", INVALID_TOKEN),
        *((options, sign({"sub": "17", "exp": 1}), TOKEN_EXPIRED) for options in (MAIN, INSECURE)),
        (PERSONAL_AT_TOP, sign({"exp": 1}), TOKEN_EXPIRED),
        (MAIN, sign({"exp": 1}, key="other"), INVALID_TOKEN),
        (MAIN, sign({"exp": 1, "channels": ["nope:a"]}), TOKEN_EXPIRED),
        *(
            (MAIN, sign({"channels": ["a", name]}), ERRORS[code])
            for name, code in (("é", 107), (LONG + "aaaaa", 106), ("nope:a", 102))
        ),
        *((MAIN, token, BAD_REQUEST) for token in (None, "")),
    ],
)
async def test_connect_is_refused(
    serve: Serve,
    connect: Connect,
    format_name: str,
    options: Options,
    token: str | None,
    answer: Any,
) -> None:
    client = await connect(serve(**options), connected=False)
    command = await client.send("connect", None if token is None else {"token": token})
    if isinstance(answer, dict):
        assert (await client.reply(command))["error"] == answer
    else:
        assert await client.closed() == answer


@pytest.mark.parametrize("method", ["publish", *READ])
def test_server_api_refuses_names(serve: Serve, method: str) -> None:
    server, more = serve(**MAIN), {"data": 1} if method == "publish" else {}
    for channel, code in {"": 107, "é": 107, "nope:a": 102, "a" * 256: 106}.items():
        assert server.api(method, channel=channel, **more) == {"error": ERRORS[code]}
    if method == "publish":
        for channel in ("a" * 255, "$p", "a#18", "server_side:a"):
            assert server.api("publish", channel=channel, data=1) == {"result": {}}
