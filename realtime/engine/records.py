"""Records: what engines keep and send, as plain values.

A record is a plain list below the key `record` of a message: a publication, a client info or a
node. Every serializer can carry lists of strings and numbers, JSON included, and encrypting ones
hide all of it.

`data` and infos travel in the spelling in which they entered. If that is the compact one, the
message is marked with `checked`, and nodes take the payloads as they are. In other messages, and in
those of nodes of older versions, payloads are parsed and compacted where they arrive.

The mark is trusted because the server of the engine is: a program that can write there can speak as
a node. Messages that came another way lose it (`redis.foreign`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from realtime import payload
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.payload import Payload
from realtime.protocol.messages import ClientInfo, Publication, UserID

Message = dict[str, Any]

RECORD = "record"
MORE = "more"
"""Key of what nodes of older versions do not know: a dict, `{"tags": {...}, "traceparent": "..."}`.
They ignore it. "key" and "removed" are those of a change of a map."""
CHECKED = "checked"
"""Key of the mark: true when both spellings of each payload in the record are the same."""

_STATUS_FIELDS = 11


def of_publication(publication: Publication) -> Message:
    """Return the record [data, uid] or [data, uid, info]. The offset stands beside it."""
    data, info = publication.data, publication.info
    if info is None:
        record: list[Any] = [data.raw.decode(), publication.uid]
        checked = data.raw is data.json
    else:
        record = [data.raw.decode(), publication.uid, _client(info)]
        checked = data.raw is data.json and _is_compact(info)
    message: Message = {RECORD: record, CHECKED: True} if checked else {RECORD: record}
    if publication.tags or publication.traceparent or publication.key:
        message[MORE] = _more(publication)
    return message


def to_publication(message: Message, offset: int, time: int = 0) -> Publication:
    """Return the publication in a message.

    Args:
        message: what `of_publication` returned.
        offset: of the publication; 0 without history.
        time: when history kept it, Unix time in milliseconds; 0 where it is unknown.

    Raises:
        Exception: no node wrote this record.
    """
    record = message[RECORD]
    checked = message.get(CHECKED) is True
    info = _client_info(record[2], checked) if len(record) > 2 else None
    data = _payload(record[0], checked)
    if MORE not in message:
        return Publication(data, info, offset, record[1], None, time)
    more = message[MORE]
    tags, traceparent = _tags(more), _text_of(more, "traceparent")
    key, removed = _text_of(more, "key"), more.get("removed") is True
    return Publication(data, info, offset, record[1], tags, time, traceparent, key, removed)


def _more(publication: Publication) -> dict[str, Any]:
    more: dict[str, Any] = {"tags": publication.tags} if publication.tags else {}
    if publication.traceparent:
        more["traceparent"] = publication.traceparent
    if publication.key:
        more["key"] = publication.key
    if publication.removed:
        more["removed"] = True
    return more


def _text_of(more: dict[str, Any], name: str) -> str:
    """Return a text in what newer nodes say, "" without one."""
    text = more.get(name, "")
    if type(text) is not str:
        raise TypeError(f"{name} is not a string")
    return text


def _tags(more: dict[str, Any]) -> dict[str, str] | None:
    """Return the tags in what newer nodes say, None without any."""
    tags: dict[str, str] | None = more.get("tags")
    if tags is not None and not all(type(text) is str for pair in tags.items() for text in pair):
        raise TypeError("tags are not strings")
    return tags or None


def of_client(info: ClientInfo) -> Message:
    """Return the record [user, client, conn_info, chan_info]. An absent info is None."""
    record = _client(info)
    return {RECORD: record, CHECKED: True} if _is_compact(info) else {RECORD: record}


def to_client(message: Message) -> ClientInfo:
    """Return the client info in a message. Raises as `to_publication`."""
    return _client_info(message[RECORD], message.get(CHECKED) is True)


def of_node(node: NodeInfo) -> Message:
    """Return the record of a node: its fields in their order, with its counters if it has them."""
    kind = NodeStatus if isinstance(node, NodeStatus) else NodeInfo
    return {RECORD: [getattr(node, field) for field in kind.__struct_fields__[:_STATUS_FIELDS]]}


def to_status(message: Message, last_seen_seconds: float, alive: bool) -> NodeStatus:
    """Return the node in a message, with what it does not say of itself.

    Fields of newer versions are dropped, and types are checked: others sort and add them.

    Raises:
        Exception: no node wrote this record.
    """
    fields = zip(NodeStatus.__struct_fields__[:_STATUS_FIELDS], message[RECORD], strict=False)
    status = msgspec.convert(dict(fields), NodeStatus)
    return msgspec.structs.replace(status, last_seen_seconds=last_seen_seconds, alive=alive)


def of_answer(answer: bytes) -> Message:
    """Return the record of an answer to a survey, which is UTF-8."""
    return {RECORD: [answer.decode()]}


def to_answer(message: Message) -> bytes:
    """Return the answer in a message. Raises as `to_publication`."""
    answer: str = message[RECORD][0]
    return answer.encode()


def of_blocked(user: UserID, end: float) -> Message:
    """Return the record [user, end]. `end`: Unix seconds."""
    return {RECORD: [user, end]}


def to_blocked(message: Message) -> tuple[UserID, float]:
    """Return the user and the end in a message. Raises as `to_publication`."""
    user, end = message[RECORD][:2]  # newer nodes may say more
    return str(user), float(end)


def _client(info: ClientInfo) -> list[Any]:
    return [info.user, info.client, _text(info.conn_info), _text(info.chan_info)]


def _client_info(record: list[Any], checked: bool) -> ClientInfo:
    user, client, conn_info, chan_info = record[:4]  # newer nodes may say more
    return ClientInfo(
        user,
        client,
        None if conn_info is None else _payload(conn_info, checked),
        None if chan_info is None else _payload(chan_info, checked),
    )


def _is_compact(info: ClientInfo) -> bool:
    conn_info, chan_info = info.conn_info, info.chan_info
    return (conn_info is None or conn_info.raw is conn_info.json) and (
        chan_info is None or chan_info.raw is chan_info.json
    )


def _text(data: Payload | None) -> str | None:
    return None if data is None else data.raw.decode()


def _payload(text: str, checked: bool) -> Payload:
    raw = text.encode()
    return Payload(raw, raw) if checked else payload.check(raw)
