"""POST JSON to an endpoint, over connections that stay open.

Built on httpx' transport, not on its client. A client would send the cookies of a response with
the next request, which is for another user here; it would use the proxies of the environment,
and write every URL, with its secrets, to the log. Redirects are followed here, by the rules of
the HTTP client of the reference server.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping

import httpx

from realtime.proxy.responses import ProxyError

MAX_REQUESTS = 10
"""Requests of one call: the first one and those of redirects."""

MAX_RESPONSE_BYTES = 10 * 2**20

KEEPALIVE_EXPIRY = 4.0
"""Seconds for which an idle connection is kept: less than most servers do, so we close first."""

KEEPALIVE_MAX_CONNECTIONS = 100

CLOSE_TIMEOUT = 1.0
"""Seconds that closing the connections may take."""

_WITH_BODY = (307, 308)
_WITHOUT_BODY = (301, 302, 303)
_FOR_SAME_SITE = ("authorization", "cookie")


class ProxyClient:
    """An HTTP client for endpoints. Belongs to one event loop."""

    def __init__(self) -> None:
        # callers limit the number of calls; a queue in httpx' pool would be slow
        limits = httpx.Limits(
            max_connections=None,
            max_keepalive_connections=KEEPALIVE_MAX_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_EXPIRY,
        )
        self._transport = httpx.AsyncHTTPTransport(
            verify=ssl.create_default_context(), limits=limits
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        """POST a body and return that of the response. Has no time limit of its own.

        Args:
            url: where to begin; redirects are followed.
            headers: names in lower case.
            body: JSON.

        Raises:
            ProxyError: there is no response with status 200, or it is too large or compressed.
        """
        try:
            return await self._post(httpx.URL(url), {**headers}, body)
        except httpx.ConnectError as error:
            raise ProxyError(f"no connection ({error})") from None
        except (httpx.TransportError, httpx.InvalidURL, OSError) as error:
            # without its text, which may quote a header
            raise ProxyError(type(error).__name__) from None

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
                raise ProxyError("it redirects to something other than an http or https URL")
            if url.host != first_host and not url.host.endswith(f".{first_host}"):
                for name in _FOR_SAME_SITE:
                    headers.pop(name, None)
            if status in _WITHOUT_BODY:
                method, body = "GET", b""
                headers.pop("content-type", None)
        raise ProxyError(f"more than {MAX_REQUESTS - 1} redirects")

    async def close(self) -> None:
        """Close all connections, within `CLOSE_TIMEOUT`."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._transport.aclose()
        except TimeoutError:
            pass


async def _body(response: httpx.Response) -> bytes:
    if response.status_code != 200:
        raise ProxyError(f"status {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProxyError("the response is compressed, against the header Accept-Encoding")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > MAX_RESPONSE_BYTES:
            raise ProxyError(f"the response is larger than {MAX_RESPONSE_BYTES} bytes")
    return bytes(body)


def _encoded(headers: Mapping[str, str], url: httpx.URL) -> list[tuple[bytes, bytes]]:
    """Return headers with names in the canonical spelling, which some applications expect."""
    if url.userinfo and "authorization" not in headers:
        credentials = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers = {**headers, "authorization": f"Basic {credentials}"}
    return [
        (name.title().encode("latin-1"), value.strip().encode("latin-1"))
        for name, value in headers.items()
    ]
