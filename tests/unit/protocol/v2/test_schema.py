"""The schema of the second generation: the numbers of its fields."""

from __future__ import annotations

import pytest

from realtime.protocol.messages import Method
from realtime.protocol.v2 import client_pb2
from realtime.protocol.v2.commands import METHODS

NUMBERS = {
    "Command": "id=1 connect=4 subscribe=5 unsubscribe=6 publish=7 presence=8 presence_stats=9"
    " history=10 ping=11 send=12 rpc=13 refresh=14 sub_refresh=15",
    "Reply": "id=1 error=2 push=4 connect=5 subscribe=6 unsubscribe=7 publish=8 presence=9"
    " presence_stats=10 history=11 rpc=13 refresh=14 sub_refresh=15",
    "Error": "code=1 message=2 temporary=3",
    "Push": "channel=2 pub=4 join=5 leave=6 unsubscribe=7 subscribe=9 disconnect=11 refresh=12",
    "ClientInfo": "user=1 client=2 conn_info=3 chan_info=4",
    "Publication": "data=4 info=5 offset=6 tags=7 key=11 removed=12",
    "Join": "info=1",
    "Leave": "info=1",
    "Unsubscribe": "code=2 reason=3",
    "Subscribe": "recoverable=1 epoch=4 offset=5 positioned=6 data=7",
    "Disconnect": "code=1 reason=2",
    "Refresh": "expires=1 ttl=2",
    "ConnectRequest": "token=1 data=2 subs=3 name=4 version=5 headers=6",
    "ConnectResult": "client=1 version=2 expires=3 ttl=4 data=5 subs=6 ping=7 pong=8 session=9"
    " node=10 time=11",
    "RefreshRequest": "token=1",
    "RefreshResult": "expires=3 ttl=4",
    "SubscribeRequest": "channel=1 token=2 recover=3 epoch=6 offset=7 data=8 positioned=9"
    " recoverable=10 join_leave=11 delta=12 tf=13 flag=14 type=15"
    " phase=16 cursor=17 limit=18",
    "SubscribeResult": "expires=1 ttl=2 recoverable=3 epoch=6 publications=7 recovered=8 offset=9"
    " positioned=10 data=11 was_recovering=12 type=15 phase=16 cursor=17 state=18",
    "SubRefreshRequest": "channel=1 token=2",
    "SubRefreshResult": "expires=1 ttl=2",
    "ChannelRequest": "channel=1",
    "PublishRequest": "channel=1 data=2 type=3 key=4 removed=5",
    "PresenceResult": "presence=1",
    "PresenceStatsResult": "num_clients=1 num_users=2",
    "HistoryRequest": "channel=1 limit=7 since=8 reverse=9",
    "HistoryResult": "publications=1 epoch=2 offset=3",
    "StreamPosition": "offset=1 epoch=2",
    "RPCRequest": "data=1 method=2",
    "RPCResult": "data=1",
    "SendRequest": "data=1",
    "FilterNode": "op=1 key=2 cmp=3 val=4 vals=5 nodes=6",
    "EmulationRequest": "node=1 session=2 data=3",
    "EmptyResult": "",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_fields_have_the_numbers_of_the_protocol(name: str) -> None:
    fields = client_pb2.DESCRIPTOR.message_types_by_name[name].fields
    assert " ".join(f"{field.name}={field.number}" for field in fields) == NUMBERS[name]


def test_every_message_of_the_schema_is_checked() -> None:
    assert set(client_pb2.DESCRIPTOR.message_types_by_name) == set(NUMBERS)


def test_methods_have_the_numbers_of_their_fields() -> None:
    fields = client_pb2.Command.DESCRIPTOR.fields[1:]
    assert {field.number: Method(field.name) for field in fields} == METHODS
