"""How publications, client infos and nodes travel between processes: plain lists.

Every channel layer and every serializer can carry lists of strings and numbers, JSON ones
included, and encrypting ones hide all of it. `data` and infos travel as they came; their
other spelling is made anew where they arrive.
"""

from __future__ import annotations

from typing import Any

import msgspec

from realtime import payload
from realtime.engine.base import NodeInfo, NodeStatus
from realtime.payload import Payload
from realtime.protocol.messages import ClientInfo, Publication

Record = list[Any]

_NODE_FIELDS = 7
_STATUS_FIELDS = 9


def of_publication(publication: Publication) -> Record:
    """[data, uid], or [data, uid, info]. The offset stands beside it."""
    record: Record = [publication.data.raw.decode(), publication.uid]
    if publication.info is not None:
        record.append(of_client(publication.info))
    return record


def to_publication(record: Record, offset: int) -> Publication:
    """Raises ValueError, LookupError, AttributeError or TypeError when this is no such record."""
    info = to_client(record[2]) if len(record) > 2 else None
    return Publication(_payload(record[0]), info, offset, record[1])


def of_client(info: ClientInfo) -> Record:
    """[user, client, conn_info, chan_info]; None for an info that is not there."""
    return [info.user, info.client, _text(info.conn_info), _text(info.chan_info)]


def to_client(record: Record) -> ClientInfo:
    """Raises ValueError or TypeError when this is no such record."""
    user, client, conn_info, chan_info = record[:4]  # newer nodes may say more
    return ClientInfo(user, client, _optional(conn_info), _optional(chan_info))


def of_node(node: NodeInfo) -> Record:
    """The fields of a node, in their order; and how much it published and delivered."""
    record: Record = [
        node.uid,
        node.name,
        node.version,
        node.num_clients,
        node.num_users,
        node.num_channels,
        node.uptime,
    ]
    if isinstance(node, NodeStatus):
        record += (node.messages_published, node.messages_delivered)
    return record


def to_node(record: Record) -> NodeInfo:
    """Raises TypeError when this is no such record. Newer nodes may say more of themselves."""
    return NodeInfo(*record[:_NODE_FIELDS])


def to_status(record: Record, silent_for: float, alive: bool) -> NodeStatus:
    """As `to_node`, with what the node does not say of itself."""
    said = NodeStatus(*record[:_STATUS_FIELDS])
    return msgspec.structs.replace(said, silent_for=silent_for, alive=alive)


def _text(data: Payload | None) -> str | None:
    return None if data is None else data.raw.decode()


def _optional(text: str | None) -> Payload | None:
    return None if text is None else _payload(text)


def _payload(text: str) -> Payload:
    return payload.check(text.encode())
