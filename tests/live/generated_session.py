"""Calls every method with a client that was generated from the OpenAPI document.

It prints what it got. mypy reads it beside that client, so it shows what the types say. Arguments:
the address of the server, its key, a channel with history and presence, and a user who is
subscribed there.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping

from generated_client import AuthenticatedClient, models
from generated_client.api.default import (
    batch,
    block_user,
    blocked_users,
    broadcast,
    channels,
    command,
    disconnect,
    history,
    history_remove,
    info,
    map_clear,
    map_publish,
    map_read_state,
    map_read_stream,
    map_remove,
    map_stats,
    presence,
    presence_stats,
    publish,
    refresh,
    rpc,
    subscribe,
    unblock_user,
    unsubscribe,
)
from generated_client.types import Unset

address, key, CHANNEL, USER = sys.argv[1:]
client = AuthenticatedClient(
    address, key, prefix="", auth_header_name="X-API-Key", raise_on_unexpected_status=True
)
client_of_commands = AuthenticatedClient(address, key, prefix="apikey")
MAP = f"keyed:{USER}"
IN_AN_HOUR = int(time.time()) + 3600


def call_publish() -> object:
    tags = models.PublishTags.from_dict({"colour": "red"})
    answer = publish.sync(
        client=client, body=models.Publish(channel=CHANNEL, data={"n": 1}, tags=tags)
    )
    assert isinstance(answer, models.PublishResponse200)
    assert not isinstance(answer.result, Unset)
    assert not isinstance(answer.result.epoch, Unset)
    return [answer.result.offset, len(answer.result.epoch) > 0]


def call_broadcast() -> object:
    body = models.Broadcast(channels=[CHANNEL, "nope:a"], b64data="Mg==")
    answer = broadcast.sync(client=client, body=body)
    assert isinstance(answer, models.BroadcastResponse200)
    assert not isinstance(answer.result, Unset)
    kept, refused = answer.result.responses
    assert not isinstance(kept.result, Unset)
    assert not isinstance(refused.error, Unset)
    return [kept.result.offset, refused.error.code, refused.error.message]


def call_history() -> object:
    answer = history.sync(client=client, body=models.History(channel=CHANNEL, limit=-1))
    assert isinstance(answer, models.HistoryResponse200)
    assert not isinstance(answer.result, Unset)
    first = answer.result.publications[0]
    assert not isinstance(first.tags, Unset)
    every = [each.data for each in answer.result.publications]
    since = models.Position(offset=answer.result.offset - 1, epoch=answer.result.epoch)
    later = history.sync(
        client=client, body=models.History(channel=CHANNEL, limit=5, since=since, reverse=False)
    )
    assert isinstance(later, models.HistoryResponse200)
    assert not isinstance(later.result, Unset)
    return [every, first.tags.to_dict(), [each.offset for each in later.result.publications]]


def call_presence() -> object:
    answer = presence.sync(client=client, body=models.Channel(channel=CHANNEL))
    assert isinstance(answer, models.PresenceResponse200)
    assert not isinstance(answer.result, Unset)
    present = answer.result.presence.additional_properties
    return [[name == each.client, each.user] for name, each in present.items()]


def call_presence_stats() -> object:
    answer = presence_stats.sync(client=client, body=models.Channel(channel=CHANNEL))
    assert isinstance(answer, models.PresenceStatsResponse200)
    assert not isinstance(answer.result, Unset)
    return [answer.result.num_clients, answer.result.num_users]


def call_channels() -> object:
    answer = channels.sync(client=client, body=models.Channels(pattern=CHANNEL))
    assert isinstance(answer, models.ChannelsResponse200)
    assert not isinstance(answer.result, Unset)
    found = answer.result.channels.additional_properties
    return {name: each.num_clients for name, each in found.items()}


def call_info() -> object:
    answer = info.sync(client=client, body=models.Info())
    assert isinstance(answer, models.InfoResponse200)
    assert not isinstance(answer.result, Unset)
    return [
        [node.num_clients >= 1, "node.messages_published" in node.metrics.items.additional_keys]
        for node in answer.result.nodes
    ]


def call_history_remove() -> object:
    answer = history_remove.sync(client=client, body=models.Channel(channel=CHANNEL))
    assert isinstance(answer, models.HistoryRemoveResponse200)
    assert isinstance(answer.result, models.Done)
    return answer.result.to_dict()


def call_map_publish() -> object:
    body = models.MapPublish(channel=MAP, key="a", data={"n": 1}, key_mode="if_new")
    answers = [map_publish.sync(client=client, body=body) for _ in range(2)]
    found: list[object] = []
    for answer in answers:
        assert isinstance(answer, models.MapPublishResponse200)
        assert not isinstance(answer.result, Unset)
        reason = answer.result.suppress_reason
        found.append([answer.result.offset, None if isinstance(reason, Unset) else reason])
    return found


def call_map_read_state() -> object:
    answer = map_read_state.sync(client=client, body=models.MapReadState(channel=MAP))
    assert isinstance(answer, models.MapReadStateResponse200)
    assert not isinstance(answer.result, Unset)
    return [[each.key, each.data, each.offset] for each in answer.result.entries]


def call_map_stats() -> object:
    answer = map_stats.sync(client=client, body=models.Channel(channel=MAP))
    assert isinstance(answer, models.MapStatsResponse200)
    assert not isinstance(answer.result, Unset)
    return answer.result.num_keys


def call_map_remove() -> object:
    answer = map_remove.sync(client=client, body=models.MapRemove(channel=MAP, key="a"))
    assert isinstance(answer, models.MapRemoveResponse200)
    assert not isinstance(answer.result, Unset)
    return answer.result.offset


def call_map_read_stream() -> object:
    answer = map_read_stream.sync(client=client, body=models.MapReadStream(channel=MAP, limit=-1))
    assert isinstance(answer, models.MapReadStreamResponse200)
    assert not isinstance(answer.result, Unset)
    return [[each.key, each.removed is True] for each in answer.result.entries]


def call_map_clear() -> object:
    answer = map_clear.sync(client=client, body=models.Channel(channel=MAP))
    assert isinstance(answer, models.MapClearResponse200)
    assert isinstance(answer.result, models.Done)
    return answer.result.to_dict()


def call_batch() -> object:
    commands = [
        models.BatchCommand(publish=models.Publish(channel=CHANNEL, data=3)),
        models.BatchCommand(presence_stats=models.Channel(channel=CHANNEL)),
        models.BatchCommand(history=models.History(channel="nope:a")),
    ]
    answer = batch.sync(client=client, body=models.Batch(commands=commands))
    assert isinstance(answer, models.BatchResponse200)
    assert not isinstance(answer.replies, Unset)
    published, stats, refused = answer.replies
    assert not isinstance(published.publish, Unset)
    assert not isinstance(stats.presence_stats, Unset)
    assert not isinstance(refused.error, Unset)
    return [published.publish.offset, stats.presence_stats.num_clients, refused.error.code]


def call_refresh() -> object:
    answer = refresh.sync(client=client, body=models.Refresh(user=USER, expire_at=IN_AN_HOUR))
    assert isinstance(answer, models.RefreshResponse200)
    assert isinstance(answer.result, models.Done)
    return answer.result.to_dict()


def call_subscribe() -> object:
    override = models.Override(presence=models.Switch(value=True))
    body = models.Subscribe(channel=CHANNEL, user=USER, info={"a": 1}, override=override)
    answer = subscribe.sync(client=client, body=body)
    assert isinstance(answer, models.SubscribeResponse200)
    assert isinstance(answer.result, models.Done)
    past = models.Subscribe(channel=CHANNEL, user=USER, expire_at=1)
    refused = subscribe.sync_detailed(
        client=client, body=past, x_centrifugo_error_mode=models.ErrorMode.TRANSPORT
    )
    assert isinstance(refused.parsed, models.ErrorBody)
    return [answer.result.to_dict(), refused.status_code.value, refused.parsed.code]


def call_unsubscribe() -> object:
    answer = unsubscribe.sync(client=client, body=models.Unsubscribe(channel=CHANNEL, user=USER))
    assert isinstance(answer, models.UnsubscribeResponse200)
    assert isinstance(answer.result, models.Sent)
    return answer.result.missing if isinstance(answer.result.missing, list) else []


def call_block_user() -> object:
    body = models.BlockUser(user="somebody else", expire_at=IN_AN_HOUR)
    answer = block_user.sync(client=client, body=body)
    assert isinstance(answer, models.BlockUserResponse200)
    assert isinstance(answer.result, models.Sent)
    return answer.result.to_dict()


def call_blocked_users() -> object:
    answer = blocked_users.sync(client=client, body=models.BlockedUsers())
    assert isinstance(answer, models.BlockedUsersResponse200)
    assert not isinstance(answer.result, Unset)
    return [[each.user, each.expire_at == IN_AN_HOUR] for each in answer.result.users]


def call_unblock_user() -> object:
    answer = unblock_user.sync(client=client, body=models.UnblockUser(user="somebody else"))
    assert isinstance(answer, models.UnblockUserResponse200)
    assert isinstance(answer.result, models.Sent)
    return answer.result.to_dict()


def call_disconnect() -> object:
    code = models.DisconnectCode(code=4000, reason="no")
    body = models.DisconnectUser(user="nobody", disconnect=code, whitelist=["one"])
    answer = disconnect.sync(client=client, body=body)
    assert isinstance(answer, models.DisconnectResponse200)
    assert isinstance(answer.result, models.Sent)
    return answer.result.to_dict()


def call_rpc() -> object:
    answer = rpc.sync(client=client, body=models.RPC(method="m", params={}))
    assert isinstance(answer, models.RpcResponse200)
    assert not isinstance(answer.error, Unset)
    return [answer.error.code, answer.error.message]


METHODS: Mapping[str, Callable[[], object]] = {
    "publish": call_publish,
    "broadcast": call_broadcast,
    "history": call_history,
    "presence": call_presence,
    "presence_stats": call_presence_stats,
    "channels": call_channels,
    "info": call_info,
    "batch": call_batch,
    "history_remove": call_history_remove,
    "refresh": call_refresh,
    "unsubscribe": call_unsubscribe,
    "subscribe": call_subscribe,
    "map_publish": call_map_publish,
    "map_read_state": call_map_read_state,
    "map_stats": call_map_stats,
    "map_remove": call_map_remove,
    "map_read_stream": call_map_read_stream,
    "map_clear": call_map_clear,
    "block_user": call_block_user,
    "blocked_users": call_blocked_users,
    "unblock_user": call_unblock_user,
    "disconnect": call_disconnect,
    "rpc": call_rpc,
}

Command = (
    models.PublishCommand
    | models.BroadcastCommand
    | models.UnsubscribeCommand
    | models.DisconnectCommand
    | models.PresenceCommand
    | models.PresenceStatsCommand
    | models.HistoryCommand
    | models.HistoryRemoveCommand
    | models.ChannelsCommand
    | models.InfoCommand
    | models.RpcCommand
)
IN_CHANNEL = models.ChannelParams(channel=CHANNEL)
COMMANDS: tuple[Command, ...] = (
    models.PublishCommand("publish", models.PublishParams(channel=CHANNEL, data=4), id=7),
    models.BroadcastCommand("broadcast", models.BroadcastParams(channels=[CHANNEL], data=5)),
    models.HistoryCommand("history", IN_CHANNEL),
    models.PresenceCommand("presence", IN_CHANNEL),
    models.PresenceStatsCommand("presence_stats", IN_CHANNEL),
    models.ChannelsCommand("channels"),
    models.InfoCommand("info"),
    models.HistoryRemoveCommand("history_remove", IN_CHANNEL),
    models.UnsubscribeCommand("unsubscribe", models.UnsubscribeParams(user="nobody")),
    models.DisconnectCommand("disconnect", models.DisconnectParams(user="nobody")),
    models.RpcCommand("rpc", models.RPCParams(method="m")),
)


def run(body: Command) -> object:
    answer = command.sync(client=client_of_commands, body=body)
    assert isinstance(answer, models.CommandResponse200)
    result = answer.result
    if not isinstance(answer.error, Unset):
        return answer.error.code
    if isinstance(result, models.CommandHistoryResult):
        return [each.data for each in result.publications]
    if isinstance(result, models.PresenceResult):
        return [each.user for each in result.presence.additional_properties.values()]
    if isinstance(result, models.PresenceStatsResult):
        return [result.num_clients, result.num_users]
    if isinstance(result, models.CommandChannelsResult):
        return result.channels
    if isinstance(result, models.CommandInfoResult):
        return [node.metrics for node in result.nodes]
    assert isinstance(result, models.Sent)
    return answer.id if isinstance(answer.id, int) else {}


if __name__ == "__main__":
    found = {name: call() for name, call in METHODS.items()}
    commands = {body.method: run(body) for body in COMMANDS}
    sys.stdout.write(json.dumps({"methods": found, "commands": commands}))
