"""Publications, positions and tokens of one request, as the panel shows them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from realtime.auth.claims import OBSERVER
from realtime.config import sources

P = TypeVar("P", bound=Sequence[Any])

ENTRIES = 500
"""Publications, positions and tokens that are kept: as many of each."""
DATA_SHOWN = 300
"""Characters of the data of a publication."""
DATA_READ = 16_384
"""Bytes: larger data are cut without being read, and show the escapes of the wire."""

DEFERRED = "deferred until the commit"
DURABLE = "durable: a row keeps it, a relay sends it"
SENT = "sent"
SENT_LATER = "sent after the commit"
FAILED = "not sent"

_WAITS = {"commit": DEFERRED, "row": DURABLE}


class RequestLog:
    """Records one request; see `realtime.tracing.recording.RequestRecorder`.

    Work that the request began, and that goes on after it, adds nothing any more.
    """

    def __init__(self) -> None:
        self.publications: list[dict[str, Any]] = []
        self.pages: list[dict[str, Any]] = []
        self.tokens: list[dict[str, Any]] = []
        self.left_out = 0
        """Entries that are not kept, because there are too many."""
        self.is_open = True
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}
        """id() of a publication → that publication, so that the id stays its own; and its entry."""

    def close(self) -> None:
        """Record nothing more."""
        self.is_open = False
        self._known.clear()

    def waits(self, publications: Sequence[tuple[Any, Any]], until: str) -> None:
        for entry in self._entries(publications):
            entry["state"] = _WAITS[until]

    @contextmanager
    def sending(self, publications: Sequence[tuple[Any, Any]]) -> Iterator[Callable[[P], P]]:
        entries = self._entries(publications)
        begun = time.perf_counter()

        def sent(outcomes: P) -> P:
            for entry, position in zip(entries, [each.position for each in outcomes], strict=False):
                entry["state"] = SENT_LATER if entry["state"] == DEFERRED else SENT
                entry["position"] = _position(position and (position.offset, position.epoch))
            return outcomes

        try:
            yield sent
        except BaseException as error:
            for entry in entries:
                entry |= {"state": FAILED, "error": f"{type(error).__name__}: {error}"}
            raise
        finally:
            cost = (time.perf_counter() - begun) * 1000
            for entry in entries:
                entry |= {"cost": round(cost, 2), "together": len(publications)}

    def positions(self, found: Mapping[str, tuple[int, str] | None]) -> None:
        for channel, position in found.items():
            self._add(self.pages, {"channel": channel, "position": _position(position)})

    def token(self, claims: Mapping[str, Any]) -> None:
        kind = _kind(claims)
        config = sources.current()
        options = config.connection_tokens if kind == "connection" else config.subscription_tokens
        user = claims.get(options.user_id_claim or "sub")
        self._add(
            self.tokens,
            {
                "kind": kind,
                "user": "anonymous" if user == "" else user or "",
                "client": claims.get("client", ""),
                "channels": ", ".join(_channels(claims)),
                "expires": _expiry(claims.get("exp")),
            },
        )

    def as_stats(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "publications": self.publications,
            "deferred": any(each["state"] == DEFERRED for each in self.publications),
            "pages": self.pages,
            "tokens": self.tokens,
            "left_out": self.left_out,
        }

    def _entries(self, publications: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]]:
        """Return the entry of each publication; one that is new gets one."""
        return [self._entry(new) for new, _ in publications]

    def _entry(self, new: Any) -> dict[str, Any]:
        if id(new) in self._known:
            return self._known[id(new)][1]
        entry = {
            "channel": new.channel,
            "data": _readable(new.data.json),
            "state": "",
            "cost": None,
            "together": 1,
            "position": "",
            "error": "",
        }
        if self._add(self.publications, entry):
            self._known[id(new)] = (new, entry)
        return entry

    def _add(self, entries: list[dict[str, Any]], entry: dict[str, Any]) -> bool:
        if not self.is_open:
            return False
        is_room = len(entries) < ENTRIES
        if is_room:
            entries.append(entry)
        else:
            self.left_out += 1
        return is_room


def _readable(data: bytes) -> str:
    if len(data) <= DATA_READ:
        text = json.dumps(json.loads(data), ensure_ascii=False)
    else:
        text = bytes(data[:DATA_READ]).decode(errors="ignore")
    return text if len(text) <= DATA_SHOWN else f"{text[:DATA_SHOWN]} … ({len(data)} bytes)"


def _position(position: tuple[int, str] | None) -> str:
    return "" if position is None else f"{position[0]} of epoch {position[1]}"


def _kind(claims: Mapping[str, Any]) -> str:
    if claims.get("aud") == OBSERVER:
        return "observer"
    return "subscription" if "channel" in claims else "connection"


def _channels(claims: Mapping[str, Any]) -> list[str]:
    if "channel" in claims:
        return [claims["channel"]]
    if "subs" in claims:
        return list(msgspec.json.decode(claims["subs"]))
    return list(claims.get("channels", ()))


def _expiry(expires: int | None) -> str:
    if expires is None:
        return "never"
    return datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
