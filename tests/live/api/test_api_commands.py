"""Commands and replies of the server API: methods, ids, order, many in one body."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.live.api_client import SHELLS, line, post, start
from tests.live.configurations import Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server

BAD_REQUEST = {"code": 107, "message": "bad request"}
NOT_FOUND = {"code": 102, "message": "namespace not found"}


# methods: params and reply distinguish each of them from all the others

METHODS: dict[str, tuple[int, Any, Any]] = {
    "publish": (0, {"channel": "off:a", "data": 1}, {"result": {}}),
    "broadcast": (1, {"channels": ["off:a"], "data": 1}, {"result": {}}),
    "unsubscribe": (2, {"user": "nobody", "channel": "nope:a"}, {"error": NOT_FOUND}),
    "disconnect": (3, {"user": "nobody", "channel": "nope:a"}, {"result": {}}),
    "presence": (4, {"channel": "kept:"}, {"result": {"presence": {}}}),
    "presence_stats": (5, {"channel": "kept:"}, {"result": {"num_clients": 0, "num_users": 0}}),
    "history": (6, {"channel": "kept:"}, {"result": {"publications": []}}),
    "history_remove": (7, {"channel": "kept:"}, {"result": {}}),
    "rpc": (10, {"method": ""}, {"error": BAD_REQUEST}),
}


@pytest.mark.parametrize("method", METHODS)
def test_method_is_a_name_in_any_case_or_a_number(server: Server, method: str) -> None:
    number, params, reply = METHODS[method]
    spellings: list[str | int] = [method, method.upper(), method.title(), number]
    answer = post(server, b"".join(line(spelling, params) for spelling in spellings))
    assert answer.replies == [reply] * len(spellings)


@pytest.mark.parametrize(
    ("number", "name", "key"), [(8, "channels", "channels"), (9, "info", "nodes")]
)
def test_method_without_params_is_a_name_in_any_case_or_a_number(
    server: Server, number: int, name: str, key: str
) -> None:
    spellings: list[str | int] = [name, name.upper(), name.title(), number]
    replies = post(server, b"".join(line(spelling) for spelling in spellings)).replies
    assert [list(reply["result"]) for reply in replies] == [[key]] * len(spellings)


@pytest.mark.parametrize("number", [11, 12, 77, -1])
def test_number_of_no_method_gets_error_104(server: Server, number: int) -> None:
    answer = post(server, line(number, {"method": ""}, id=5))
    assert answer.status == 200
    assert answer.body == b'{"id":5,"error":{"code":104,"message":"method not found"}}\n'


def test_command_without_a_method_publishes(server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    body = json.dumps({"params": {"channel": channel, "data": "x"}}).encode()
    assert post(server, body).body == b'{"result":{}}\n'
    (publication,) = server.api("history", channel=channel)["result"]["publications"]
    assert publication["data"] == "x"


@pytest.mark.parametrize("command", [b"{}", b"null", b" null ", b'{"other":1}'])
def test_command_with_nothing_in_it_is_a_publish_without_params(
    server: Server, command: bytes
) -> None:
    assert post(server, command).body == b'{"error":{"code":107,"message":"bad request"}}\n'


def test_null_command_among_others_is_answered_in_its_place(server: Server) -> None:
    answer = post(server, b'{"id":1,"method":"info"}\nnull\n{"id":3,"method":"info"}')
    assert [reply.get("id") for reply in answer.replies] == [1, None, 3]
    assert answer.replies[1] == {"error": BAD_REQUEST}


def test_keys_are_matched_in_any_case_and_unknown_ones_are_ignored(
    server: Server, unique: str
) -> None:
    channel = f"kept:{unique}"
    command = {
        "ID": 4,
        "Method": "publish",
        "jsonrpc": "2.0",
        "PARAMS": {"Channel": channel, "DATA": {"Key": 1}, "uid": "u", "skip_history": True},
    }

    assert post(server, json.dumps(command).encode()).body == b'{"id":4,"result":{}}\n'

    (publication,) = server.api("history", channel=channel)["result"]["publications"]
    assert publication["data"] == {"Key": 1}
    assert publication["uid"] != "u"


@pytest.mark.parametrize("command_id", [1, 77, 4294967295])
def test_id_is_repeated_in_front_of_result_and_error(server: Server, command_id: int) -> None:
    body = line("disconnect", {"user": "nobody"}, id=command_id) + line("publish", id=command_id)
    assert post(server, body).body == (
        b'{"id":%d,"result":{}}\n{"id":%d,"error":{"code":107,"message":"bad request"}}\n'
        % (command_id, command_id)
    )


def test_without_an_id_or_with_id_0_the_reply_has_none(server: Server) -> None:
    body = line("disconnect", {"user": "nobody"}) + line("disconnect", {"user": "nobody"}, id=0)
    assert post(server, body).body == b'{"result":{}}\n{"result":{}}\n'


# several commands in one body


@pytest.mark.parametrize("layout", ["{}\n{}\n{}", "\r\n{}{}\n\n {}"])
def test_commands_follow_each_other_in_any_layout(server: Server, layout: str) -> None:
    commands = [json.dumps({"id": n, "method": "disconnect"}, indent=2) for n in (1, 2, 3)]
    answer = post(server, layout.format(*commands).encode())
    assert answer.replies == [{"id": n, "error": BAD_REQUEST} for n in (1, 2, 3)]


def test_commands_are_executed_in_order_and_an_error_stops_nothing(
    server: Server, unique: str
) -> None:
    channel = f"kept:{unique}"
    body = b"".join(
        [
            line("publish", {"channel": channel, "data": 1}),
            line("publish", {"channel": "nope:a", "data": 2}, id=2),
            line("history", {"channel": channel}, id=3),
            line("publish", {"channel": channel, "data": 4}),
            line("history", {"channel": channel}, id=5),
            line("history_remove", {"channel": channel}),
            line("history", {"channel": channel}, id=7),
        ]
    )

    replies = post(server, body).replies

    assert [reply for reply in replies if "id" not in reply] == [{"result": {}}] * 3
    assert [reply.get("id") for reply in replies] == [None, 2, 3, None, 5, None, 7]
    assert replies[1]["error"] == NOT_FOUND
    kept = [
        [publication["data"] for publication in replies[place]["result"]["publications"]]
        for place in (2, 4, 6)
    ]
    assert kept == [[1], [1, 4], []]


@pytest.mark.parametrize("shell", SHELLS)
async def test_client_is_answered_while_a_body_of_thousands_of_commands_runs(
    serve: Serve, connect: Connect, unique: str, shell: str
) -> None:
    count = 20_000
    server = start(serve, shell)
    client = await connect(server)
    params = {"channel": unique, "data": 1}
    body = b"".join(line("publish", params, id=n) for n in range(1, count + 1))

    posted = asyncio.create_task(asyncio.to_thread(post, server, body))
    pings = 0
    while not posted.done():
        await client.call("ping")
        pings += 1

    assert (await posted).replies == [{"id": n, "result": {}} for n in range(1, count + 1)]
    # A server that did all commands in one go would answer a ping before and one after.
    assert pings > 5


async def test_subscriber_gets_thousands_of_publications_of_one_body_in_order(
    client: ProtocolClient, server: Server, unique: str, format_name: str
) -> None:
    count = 5_000
    await client.result("subscribe", {"channel": unique})
    body = b"".join(line("publish", {"channel": unique, "data": n}) for n in range(count))
    answer = await asyncio.to_thread(post, server, body)
    assert answer.body == b'{"result":{}}\n' * count
    assert [(await client.publication())["data"] for _ in range(count)] == list(range(count))


# errors of every method: protocol reference 6.4, in the order of its checks

C, D = "kept:a", 1
MISSING: list[Any] = [None, {}]
CHANNEL_ONLY: list[Any] = [*MISSING, {"channel": ""}, {"channel": 5}, {"channel": ["a"]}]
NOT_ASCII = {"channel": "kept:\xe9"}
UNKNOWN = {"channel": "nope:a"}

REFUSED: dict[str, dict[int, list[Any]]] = {
    "publish": {
        107: [
            *MISSING,
            {"channel": "", "data": D},
            {"data": D},
            {"channel": 5, "data": D},
            {"channel": None, "data": D},
            {"channel": C},
            {**UNKNOWN},
            {**NOT_ASCII, "data": D},
        ],
        102: [
            {**UNKNOWN, "data": D},
            {"channel": "$nope:a", "data": D},
            {"channel": "a#kept:17", "data": D},
            {"channel": "Kept:a", "data": D},
        ],
    },
    "broadcast": {
        107: [
            *MISSING,
            {"channels": [], "data": D},
            {"data": D},
            {"channels": None, "data": D},
            {"channels": C, "data": D},
            {"channels": [5], "data": D},
            {"channels": {C: 1}, "data": D},
            {"channels": [C]},
            {"channels": ["nope:a"]},
            {"channels": [""], "data": D},
            {"channels": ["\xe9"], "data": D},
        ],
        102: [{"channels": ["nope:a"], "data": D}, {"channels": ["nope:a", ""], "data": D}],
    },
    "unsubscribe": {
        107: [
            *MISSING,
            {"channel": C},
            {"user": "", "channel": C},
            {"user": 17, "channel": C},
            {"user": ["17"]},
            {"user": "17", "channel": 5},
            {"user": "", **UNKNOWN},
            {"user": "17", **NOT_ASCII},
        ],
        102: [{"user": "17", **UNKNOWN}],
    },
    "disconnect": {107: [*MISSING, {"user": ""}, {"user": 17}, {"user": ["17"]}, {"user": None}]},
    "presence": {107: [*CHANNEL_ONLY, NOT_ASCII], 102: [UNKNOWN], 108: [{"channel": "off:a"}]},
    "presence_stats": {
        107: [*CHANNEL_ONLY, NOT_ASCII],
        102: [UNKNOWN],
        108: [{"channel": "off:a"}, {"channel": "a"}, {"channel": ":a"}],
    },
    "history": {
        107: [*CHANNEL_ONLY, NOT_ASCII],
        102: [UNKNOWN],
        108: [{"channel": name} for name in ("off:a", "size:a", "lifetime:a", "a", "::a")],
    },
    "history_remove": {
        107: [*CHANNEL_ONLY, NOT_ASCII],
        102: [UNKNOWN],
        108: [{"channel": name} for name in ("off:a", "size:a", "lifetime:a", "a")],
    },
    "rpc": {
        107: [*MISSING, {"method": ""}, {"method": 5}],
        104: [{"method": "getCurrentYear"}, {"method": "publish", "params": {}}],
    },
}
MESSAGES = {
    102: "namespace not found",
    104: "method not found",
    107: "bad request",
    108: "not available",
}


@pytest.mark.parametrize(
    ("method", "code", "params"),
    [
        pytest.param(method, code, params, id=f"{method}-{json.dumps(params)}-{code}")
        for method, codes in REFUSED.items()
        for code, cases in codes.items()
        for params in cases
    ],
)
def test_command_is_refused_with_the_code_of_its_first_failing_check(
    server: Server, method: str, code: int, params: Any
) -> None:
    answer = post(server, line(method, params))
    assert answer.status == 200
    assert answer.replies == [{"error": {"code": code, "message": MESSAGES[code]}}]


PARAMS = ["null", '"x"', "5", "[]", "true", '["channel","kept:a"]']


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("method", METHODS)
def test_params_that_are_no_object_get_error_107(server: Server, method: str, params: str) -> None:
    answer = post(server, f'{{"method":"{method}","params":{params}}}'.encode())
    assert answer.replies == [{"error": BAD_REQUEST}]


@pytest.mark.parametrize("params", ["null", '"x"', "5", "[]", '{"a":1}'])
def test_channels_and_info_do_not_look_at_params(server: Server, params: str) -> None:
    body = f'{{"method":"channels","params":{params}}}{{"method":"info","params":{params}}}'
    assert [list(reply) for reply in post(server, body.encode()).replies] == [["result"]] * 2
