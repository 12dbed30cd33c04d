"""Results of the server API, and how terminals show them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import UNSET

from realtime.protocol.messages import PresenceStatsResult
from realtime.server_api.results import (
    BlockedUsersResult,
    BroadcastResult,
    CommandChannelsResult,
    CommandInfoResult,
    Done,
    ErrorBody,
    HistoryResult,
    KeptPublication,
    MapChangeResult,
    MapReadStateResult,
    PresenceResult,
    Published,
    Sent,
)
from realtime.tools.base import count, escape_for_terminal, table

NODE_HEADING = ("NAME", "UID", "VERSION", "CLIENTS", "USERS", "CHANNELS", "UPTIME")


def show_blocked(result: BlockedUsersResult) -> str:
    if not result.users:
        return "No user is blocked."
    rows: list[tuple[str, ...]] = [("USER", "UNTIL")]
    for blocked in result.users:
        until = datetime.fromtimestamp(blocked.expire_at, UTC)
        rows.append((blocked.user, until.isoformat(sep=" ").removesuffix("+00:00") + "Z"))
    return table(rows)


def show_presence(result: PresenceResult) -> str:
    if not result.presence:
        return "No client is subscribed."
    rows: list[tuple[str, ...]] = [("CLIENT", "USER", "CONNECTION INFO", "CHANNEL INFO")]
    for client, info in result.presence.items():
        infos = (
            "" if raw is UNSET else escape_for_terminal(bytes(raw).decode())
            for raw in (info.conn_info, info.chan_info)
        )
        rows.append((client, info.user, *infos))
    return table(rows)


def show_stats(result: PresenceStatsResult) -> str:
    return f"{count(result.num_clients, 'client')}, {count(result.num_users, 'user')}"


def show_history(result: HistoryResult) -> str:
    if not result.publications:
        position = f"offset {result.offset}, epoch {escape_for_terminal(result.epoch)}"
        return f"No publication. The position of the channel: {position}."
    return _publications(result.publications)


def show_state(result: MapReadStateResult) -> str:
    if not result.entries:
        return "No key."
    shown = _publications(result.entries)
    more = f"\nMore keys: --cursor {escape_for_terminal(result.cursor)}" if result.cursor else ""
    return shown + more


def _publications(publications: Sequence[KeptPublication]) -> str:
    has_keys = any(each.key for each in publications)
    rows: list[tuple[str, ...]] = [
        ("OFFSET", *(("KEY",) if has_keys else ()), "TIME", "USER", "TAGS", "DATA")
    ]
    for publication in publications:
        rows.append(
            (
                str(publication.offset),
                *((publication.key,) if has_keys else ()),
                _time(publication.time),
                "" if publication.info is None else publication.info.user,
                " ".join(f"{name}={value}" for name, value in (publication.tags or {}).items()),
                "removed" if publication.removed else bytes(publication.data).decode(),
            )
        )
    return table(rows)


def _time(milliseconds: int) -> str:
    """Return a time in UTC; "" where it is unknown."""
    if not milliseconds:
        return ""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + "Z"


def show_position(result: Published) -> str:
    if not result.kept:
        return ""
    if not result.offset:
        return "Published."
    return f"Published. Offset {result.offset}, epoch {escape_for_terminal(result.epoch)}."


def show_change(result: MapChangeResult) -> str:
    if result.suppressed:
        return ""
    if not result.offset:
        return "Changed."
    return f"Changed. Offset {result.offset}, epoch {escape_for_terminal(result.epoch)}."


def show_broadcast(result: BroadcastResult) -> str:
    published = len(result.responses) - len(_refused(result)) - _others(result)
    return f"Published into {count(published, 'channel')}." if published else ""


def failure_of(result: object) -> str:
    """Return why a call failed in part; empty if it did not."""
    if isinstance(result, Published) and not result.kept:
        top = f"{result.offset}, epoch {escape_for_terminal(result.epoch)}"
        return f"Not published: the channel is at offset {top}."
    if isinstance(result, MapChangeResult) and result.suppressed:
        return f"Not changed: {result.suppress_reason}."
    if not isinstance(result, BroadcastResult):
        return ""
    errors, others = _refused(result), _others(result)
    why = sorted({f"{error.code}: {escape_for_terminal(error.message)}" for error in errors})
    texts = [f"{count(len(errors), 'channel')} refused, {'; '.join(why)}."] if errors else []
    texts += [f"Not published into {count(others, 'channel')}: another position."] if others else []
    return " ".join(texts)


def _refused(result: BroadcastResult) -> list[ErrorBody]:
    return [response.error for response in result.responses if response.error is not None]


def _others(result: BroadcastResult) -> int:
    """Return how many channels were not where the call expected them."""
    published = (response.result for response in result.responses)
    return sum(each is not None and not each.kept for each in published)


def show_done(_: Done) -> str:
    return "Removed."


def show_channels(result: CommandChannelsResult) -> str:
    return "\n".join(map(escape_for_terminal, result.channels)) or "No channel has a subscriber."


def show_sent(_: Sent) -> str:
    return "Sent to every process."


def missing_of(result: object) -> str:
    """Return what a result says of nodes that are silent; empty if none is."""
    if not isinstance(result, CommandChannelsResult | Sent) or not result.missing:
        return ""
    names = ", ".join(map(escape_for_terminal, result.missing))
    if isinstance(result, CommandChannelsResult):
        return f"Silent: {names}. Channels with subscribers only there are not listed."
    return f"Silent: {names}. It takes effect there as soon as the process answers again."


def show_info(result: CommandInfoResult) -> str:
    if not result.nodes:
        return "No process serves clients."
    rows: list[tuple[str, ...]] = [NODE_HEADING]
    for node in result.nodes:
        numbers = (node.num_clients, node.num_users, node.num_channels)
        names = (
            escape_for_terminal(node.name),
            escape_for_terminal(node.uid),
            escape_for_terminal(node.version),
        )
        rows.append((*names, *map(str, numbers), f"{node.uptime} s"))
    return table(rows)
