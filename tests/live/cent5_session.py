"""Calls every method with cent 5, and prints what it got. Run in a process of its own.

Arguments: the URL of the API, its key, a channel with history and presence, and a user who is
subscribed there. cent 5 and cent 3 are packages of one name, so tests cannot import both.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from cent import (
    BatchRequest,
    BroadcastRequest,
    CentApiResponseError,
    CentUnauthorizedError,
    ChannelsRequest,
    Client,
    DisconnectRequest,
    HistoryRemoveRequest,
    HistoryRequest,
    InfoRequest,
    PresenceRequest,
    PresenceStatsRequest,
    PublishRequest,
    RefreshRequest,
    StreamPosition,
    SubscribeRequest,
    UnsubscribeRequest,
)

PAID = {
    *("block_user", "unblock_user", "connections", "invalidate_user_tokens", "revoke_token"),
    *("get_user_status", "update_user_status", "delete_user_status"),
    *("device_list", "device_register", "device_remove", "device_update"),
    *("device_topic_list", "device_topic_update", "user_topic_list", "user_topic_update"),
    *("send_push_notification", "cancel_push", "update_push_status"),
}
"""Methods of the paid edition of the reference server; it has no rpc."""


def main(url: str, key: str, channel: str, user: str) -> dict[str, Any]:
    client = Client(url, key, timeout=10)
    results: dict[str, Any] = {}

    def call(name: str, method: Any, request: Any) -> Any:
        result = method(request)
        results[name] = json.loads(result.json(exclude_none=True))
        return result

    first = call(
        "publish",
        client.publish,
        PublishRequest(channel=channel, data={"n": 1}, tags={"k": "v"}, idempotency_key="once"),
    )
    call(
        "publish again",
        client.publish,
        PublishRequest(channel=channel, data={"n": 2}, idempotency_key="once"),
    )
    call("broadcast", client.broadcast, BroadcastRequest(channels=[channel, "nope:a"], data=3))
    call("history", client.history, HistoryRequest(channel=channel, limit=-1))
    since = StreamPosition(offset=first.offset, epoch=first.epoch)
    call("history since", client.history, HistoryRequest(channel=channel, limit=5, since=since))
    reverse = HistoryRequest(channel=channel, limit=1, reverse=True)
    call("history reverse", client.history, reverse)
    call("presence", client.presence, PresenceRequest(channel=channel))
    call("presence_stats", client.presence_stats, PresenceStatsRequest(channel=channel))
    call("channels", client.channels, ChannelsRequest(pattern=channel))
    call("info", client.info, InfoRequest())
    call("history_remove", client.history_remove, HistoryRemoveRequest(channel=channel))
    commands = [
        PublishRequest(channel=channel, data=4),
        PresenceStatsRequest(channel=channel),
    ]
    batch = client.batch(BatchRequest(requests=commands))
    results["batch"] = [json.loads(reply.json(exclude_none=True)) for reply in batch.replies]
    call("refresh", client.refresh, RefreshRequest(user=user))
    subscribe = SubscribeRequest(user=user, channel=channel, info=5, data={"n": 5})
    call("subscribe", client.subscribe, subscribe)
    call("unsubscribe", client.unsubscribe, UnsubscribeRequest(user=user, channel=channel))
    call("disconnect", client.disconnect, DisconnectRequest(user=user))
    try:
        client.history(HistoryRequest(channel="nope:a"))
    except CentApiResponseError as error:
        results["error"] = error.code
    try:
        Client(url, "wrong", timeout=10).info(InfoRequest())
    except CentUnauthorizedError:
        results["wrong key"] = "unauthorized"
    client.close()
    public = {name for name in dir(Client) if not name.startswith("_")}
    results["methods not called"] = sorted(public - PAID - {"close"} - results.keys())
    return results


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
