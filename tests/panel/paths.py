"""Paths of the panel, for those who have no Django settings."""

from __future__ import annotations

from urllib.parse import urlencode


def page_path(name: str, **query: object) -> str:
    """The path of a page in the Django admin."""
    return f"/admin/realtime_admin/{name}/" + (f"?{urlencode(query)}" if query else "")
