"""Positions in a header, for responses that are no pages: JSON for a script, for example.

    Realtime-Position: {"channel":"orders:42","offset":17,"epoch":"xcf4"}

Each channel is one such object; several are a list, with commas between them. `positionOf` of
client.js reads it. A channel whose position is unknown is left out. And in an event ID, for
addresses of /connection/events.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from realtime.errors import Error
from realtime.pages import page_positions
from realtime.pages.elements import as_json
from realtime.protocol import event_ids
from realtime.protocol.messages import StreamPosition
from realtime.server_api.arguments import Position

logger = logging.getLogger("realtime.pages")

HEADER = "Realtime-Position"
EXPOSED = "Access-Control-Expose-Headers"

UNKNOWN = StreamPosition(0, "unknown")
"""No stream has this epoch, so a listener gets a reset and loads the state."""


def set_positions(
    response: HttpResponseBase, request: HttpRequest, channels: Sequence[str]
) -> None:
    """Write the positions that channels had when a request began into a header of its response.

    What an earlier call wrote stays, but for the same channels.

    Raises:
        NotAvailable, NamespaceNotFound, RuntimeError: as `positions`.
    """
    _write(response, page_positions.positions(request, channels))


async def aset_positions(
    response: HttpResponseBase, request: HttpRequest, channels: Sequence[str]
) -> None:
    """Write positions into a header of a response. Async version of `set_positions`."""
    _write(response, await page_positions.apositions(request, channels))


def _write(response: HttpResponseBase, positions: Mapping[str, Position | None]) -> None:
    entries = {each["channel"]: each for each in _written(response)}
    for channel, position in positions.items():
        if position is not None:
            entries[channel] = {"channel": channel, **as_json(position)}
    if not entries:
        return
    response.headers[HEADER] = ", ".join(
        json.dumps(entry, separators=(",", ":")) for entry in entries.values()
    )
    exposed = response.headers.get(EXPOSED, "")
    if HEADER.lower() not in exposed.lower():
        response.headers[EXPOSED] = f"{exposed}, {HEADER}" if exposed else HEADER


def _written(response: HttpResponseBase) -> list[dict[str, Any]]:
    """Return what earlier calls wrote into the header; nothing of what no call writes."""
    try:
        entries = json.loads(f"[{response.headers.get(HEADER, '')}]")
    except (ValueError, RecursionError):  # a view wrote it, or copied it from another server
        return []
    return [each for each in entries if isinstance(each, dict) and type(each.get("channel")) is str]


async def aevent_id(request: HttpRequest, channels: Sequence[str]) -> str:
    """Return what `{% realtime_since %}` writes, for views that are coroutines.

    Raises:
        NotAvailable, NamespaceNotFound, RuntimeError: as `positions`.
    """
    return event_id(await page_positions.apositions(request, channels))


def event_id(positions: Mapping[str, Position | None]) -> str:
    """Return the ID of an event at these positions. One that is unknown is of no stream."""
    return event_ids.encode(
        {
            channel: UNKNOWN
            if position is None
            else StreamPosition(position.offset, position.epoch)
            for channel, position in positions.items()
        }
    )


class RealtimePositionMixin:
    """For views of REST framework: positions in a header of each successful response.

    class Orders(RealtimePositionMixin, ModelViewSet):
        realtime_channels = ["team:{team_id}:orders"]
    """

    realtime_channels: Sequence[str] = ()
    """Names of channels. What stands in braces is taken from the URL."""

    if TYPE_CHECKING:
        kwargs: dict[str, Any]

    def get_realtime_channels(self) -> list[str]:
        """Return the names of the channels of this request."""
        return [channel.format_map(self.kwargs) for channel in self.realtime_channels]

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]
        if response.status_code < 400:
            channels = self.get_realtime_channels()
            try:
                set_positions(response, getattr(request, "_request", request), channels)
            except Error as error:
                # the URL chose the name of the channel, or the options have a mistake
                logger.warning("No position of %s in the response: %s", channels, error)
        return response
