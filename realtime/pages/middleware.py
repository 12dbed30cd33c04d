"""The middleware for positions of pages.

    MIDDLEWARE = [..., "realtime.pages.middleware.PositionMiddleware", ...]

It notes when a request begins, and completes the elements of the page: one round trip for each
shard. Place it below middleware that compresses responses. It works in sync and in async sites.

A page that has something of its visitor is private: the middleware says so in its headers, and
without the middleware `realtime.asgi.application` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest

from realtime.errors import Error
from realtime.pages import elements, page_positions
from realtime.serving import run_by_hand
from realtime.transports.private_pages import KEY, PagePrivacy, keep_from_caches

ATTRIBUTE = "_realtime_page"


class PositionMiddleware:
    """See the module."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if self._is_async:
            return self._acall(request)
        page = _begin(request)
        response = self.get_response(request)
        if wanted := _finish(page, response):
            _replace(response, _read(wanted))
        return response

    async def _acall(self, request: HttpRequest) -> Any:
        page = _begin(request)
        response = await self.get_response(request)
        if wanted := _finish(page, response):
            _replace(response, await _aread(wanted))
        return response


def page_of(request: HttpRequest) -> PagePrivacy | None:
    """Return what the middleware keeps of a page; None without the middleware."""
    page: PagePrivacy | None = getattr(request, ATTRIBUTE, None)
    return page


def privacy_of(request: HttpRequest) -> PagePrivacy | None:
    """Return where a tag says that a page is private; None if nobody would read it."""
    page: PagePrivacy | None = getattr(request, "scope", {}).get(KEY)
    return page_of(request) or page


def _begin(request: HttpRequest) -> PagePrivacy:
    page_positions.note_begin(request)
    page = PagePrivacy()
    setattr(request, ATTRIBUTE, page)
    return page


def _finish(page: PagePrivacy, response: Any) -> list[tuple[str, int]]:
    """Return the elements that wait; those of a streamed page are completed as they pass."""
    page.sent = response.streaming
    if page.private:
        keep_from_caches(response)
    kind = response.headers.get("Content-Type", "").lower()
    if "html" not in kind or "Content-Encoding" in response.headers:
        return []
    if not response.streaming:
        return elements.pending(response.content)
    chunks = response.streaming_content
    response.streaming_content = _acompleted(chunks) if response.is_async else _completed(chunks)
    return []


def _replace(response: Any, found: elements.Found) -> None:
    response.content = elements.complete(response.content, found)
    if "Content-Length" in response.headers:
        response.headers["Content-Length"] = str(len(response.content))


def _completed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        part, rest = elements.split(rest + chunk)
        wanted = elements.pending(part)
        yield elements.complete(part, _read(wanted)) if wanted else part
    if rest:
        yield rest


async def _acompleted(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        part, rest = elements.split(rest + chunk)
        wanted = elements.pending(part)
        yield elements.complete(part, await _aread(wanted)) if wanted else part
    if rest:
        yield rest


def _read(wanted: list[tuple[str, int]]) -> elements.Found:
    return run_by_hand(_aread(wanted, page_positions.call))


async def _aread(
    wanted: list[tuple[str, int]], ask: page_positions.Ask = page_positions.acall
) -> elements.Found:
    times: dict[int, list[str]] = {}
    for channel, at in wanted:
        times.setdefault(at, []).append(channel)
    found: elements.Found = {}
    for at, channels in times.items():
        with suppress(Error):  # a cache kept what the options no longer allow
            positions = await page_positions.read_by(ask, channels, at)
            found.update({(channel, at): position for channel, position in positions.items()})
    return found
