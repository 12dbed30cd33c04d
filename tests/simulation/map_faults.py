"""Known faults of maps; see `known_faults`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from realtime.clients.maps import Pages
from realtime.node.maps import Changes
from realtime.protocol.messages import Publication

_change = Changes.change
_read = Pages.read


def _removed_in_any_case(changes: Changes, *about: Any, **how: Any) -> Any:
    """A node removes what it found, also if the entry was put again meanwhile."""
    mode = how.pop("mode", "")
    return _change(changes, *about, **how, mode="" if mode == "if_expired" else mode)


async def _read_late(pages: Pages, limit: int) -> tuple[Publication, ...]:
    """The map has the position of its last page, and lacks changes of the pages before that."""
    pages.position = None
    return await _read(pages, limit)


def expiry_in_any_case() -> AbstractContextManager[Any]:
    return mock.patch.object(Changes, "change", _removed_in_any_case)


@contextmanager
def late_position() -> Iterator[None]:
    with (
        mock.patch.object(Pages, "check_next", return_value=None),
        mock.patch.object(Pages, "read", _read_late),
    ):
        yield
