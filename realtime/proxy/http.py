"""Posts JSON to the application, over connections that stay open.

Built on httpx' transport, not on its client: a client keeps the cookies of an answer for its
next request, which is another user's here, uses the proxies of the environment, and writes every
URL, with all that is in it, to the log. What it would do besides is to follow redirects; that is
done here, as the HTTP client of the reference server does it.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping

import httpx

from realtime.proxy.answers import NoAnswer

MAX_REQUESTS = 10
"""Requests of one call: the first one, and those that redirects lead to."""

ANSWER_MAX_BYTES = 10 * 2**20

KEEPALIVE_EXPIRY = 4.0
"""Seconds an idle connection is kept: less than most servers do, so that it is ours to close."""

KEEPALIVE_MAX_CONNECTIONS = 100

CLOSE_TIMEOUT = 1.0
"""Seconds until idle connections are closed, however slow their peers."""

_WITH_BODY = (307, 308)
_WITHOUT_BODY = (301, 302, 303)
_FOR_THE_SAME_SITE = ("authorization", "cookie")
_OF_THE_BODY = ("content-type",)


class Poster:
    """Posts JSON. Belongs to one event loop."""

    def __init__(self) -> None:
        # callers bound how many calls run at once; a queue in httpx' pool would be slow
        limits = httpx.Limits(
            max_connections=None,
            max_keepalive_connections=KEEPALIVE_MAX_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_EXPIRY,
        )
        self._transport = httpx.AsyncHTTPTransport(
            verify=ssl.create_default_context(), limits=limits
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        """Post a body; returns that of the answer, which has status 200. Not bounded in time.

        Args:
            headers: names in lower case.

        Raises:
            NoAnswer
        """
        try:
            return await self._post(httpx.URL(url), {**headers}, body)
        except httpx.ConnectError as error:
            raise NoAnswer(f"no connection ({error})") from None
        except (httpx.TransportError, httpx.InvalidURL, OSError) as error:
            # not its text, which may quote a header
            raise NoAnswer(type(error).__name__) from None

    async def _post(self, url: httpx.URL, headers: dict[str, str], content: bytes) -> bytes:
        method, body = "POST", content
        first_host = url.host
        headers |= {"content-type": "application/json", "accept-encoding": "identity"}
        for _ in range(MAX_REQUESTS):
            request = httpx.Request(method, url, headers=_encoded(headers, url), content=body)
            response = await self._transport.handle_async_request(request)
            try:
                location = response.headers.get("location")
                status = response.status_code
                if status not in (*_WITH_BODY, *_WITHOUT_BODY) or location is None:
                    return await _body(response)
            finally:
                await response.aclose()
            url = url.join(location)
            if url.scheme not in ("http", "https") or not url.host:
                raise NoAnswer("it redirects to what is no http(s) URL")
            if url.host != first_host and not url.host.endswith(f".{first_host}"):
                _remove(headers, _FOR_THE_SAME_SITE)
            if status in _WITHOUT_BODY:
                method, body = "GET", b""
                _remove(headers, _OF_THE_BODY)
        raise NoAnswer(f"more than {MAX_REQUESTS - 1} redirects")

    async def close(self) -> None:
        """Close all connections. Bounded in time."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._transport.aclose()
        except TimeoutError:
            pass


async def _body(response: httpx.Response) -> bytes:
    if response.status_code != 200:
        raise NoAnswer(f"status {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise NoAnswer("the answer is compressed, which was not asked for")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > ANSWER_MAX_BYTES:
            raise NoAnswer(f"the answer is larger than {ANSWER_MAX_BYTES} bytes")
    return bytes(body)


def _encoded(headers: Mapping[str, str], url: httpx.URL) -> list[tuple[bytes, bytes]]:
    """Headers with their names in canonical spelling, as some applications expect them."""
    if url.userinfo and "authorization" not in headers:
        credentials = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers = {**headers, "authorization": f"Basic {credentials}"}
    return [
        (name.title().encode("latin-1"), value.strip().encode("latin-1"))
        for name, value in headers.items()
    ]


def _remove(headers: dict[str, str], names: tuple[str, ...]) -> None:
    for name in names:
        headers.pop(name, None)
