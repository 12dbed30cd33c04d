"""A running service at a URL, reached over HTTP as clients and publishers reach it.

httpx' transport is used without its client, which would go through the proxies of the
environment and fail on a redirect that leads to no URL. Certificates are those that the
operating system trusts.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
from django.core.management.base import CommandError, CommandParser
from django.urls import NoReverseMatch, reverse

from realtime.asgi import API_URL_NAME
from realtime.config.options import Config
from realtime.tools.base import escape_for_terminal, number

DEFAULT_TIMEOUT = 5.0
MIN_TIMEOUT, MAX_TIMEOUT = 0.001, 3600.0
"""Seconds."""

MAX_BODY = 1 << 28
"""Bytes of an answer. Only a server that is not ours sends more."""

NO_API = "the URLconf has no server API"
ADD_API = 'Add path("api", include("realtime.api.urls"))'


class Unreachable(Exception):
    """The service gives no usable answer. The text says why, without keys and tokens."""


class RemoteResponse(NamedTuple):
    """An answer, and the seconds it took."""

    status: int
    headers: httpx.Headers
    body: bytes
    seconds: float

    def header(self, name: str) -> str:
        """Return the value of a header, "" when there is none."""
        return str(self.headers.get(name, ""))


class Remote:
    """The service of the site at a URL."""

    def __init__(self, url: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        """
        Args:
            url: scheme, host and port of the site; with a path where the site has one.
            timeout: seconds to wait for each answer.

        Raises:
            CommandError: the URL is not one of a site.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
            httpx.URL(url)
        except (ValueError, httpx.InvalidURL):
            raise CommandError("The address is not a URL.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError(
                "The URL must be the address of the site, such as https://example.org."
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise CommandError("The URL must have no user, no password, no query and no fragment.")
        self.secure = parts.scheme == "https"
        self.origin = f"{parts.scheme}://{parts.netloc.lower()}"
        """What browsers send as Origin from pages of this site."""
        self.timeout = timeout
        self._host, self._port = parts.hostname, port or (443 if self.secure else 80)
        self._path = parts.path.rstrip("/")
        self._kept: httpx.HTTPTransport | None = None

    def __str__(self) -> str:
        return self.origin + self._path

    def url(self, path: str) -> str:
        """Return the URL of a path of the site, which is behind the path of the site's URL."""
        if self._path and not path.startswith(f"{self._path}/"):
            path = self._path + path
        return self.origin + path

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Say in words what goes wrong on the way to the service.

        Raises:
            Unreachable: for any error of the network or HTTP inside of the `with` block.
        """
        try:
            yield
        except (OSError, httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise Unreachable(f"{self}: {_why(error, self.timeout)}") from error

    def connect(self) -> socket.socket:
        """Return a connection to the service, with TLS for https.

        Raises:
            OSError: there is none within the timeout.
        """
        connection = socket.create_connection((self._host, self._port), self.timeout)
        try:
            if self.secure:
                return self._tls.wrap_socket(connection, server_hostname=self._host)
        except BaseException:
            connection.close()
            raise
        return connection

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> RemoteResponse:
        """Send a request, on a new connection outside of `kept_open`; redirects are not followed.

        Raises:
            Unreachable: there is no answer within the timeout, or it is not one of HTTP.
        """
        began = time.monotonic()
        kept = nullcontext(self._kept) if self._kept else self._new_transport()
        with self.reached(), kept as transport:
            request = httpx.Request(
                method,
                self.url(path),
                headers={"Accept-Encoding": "identity", **headers},
                content=body,
                extensions={"timeout": httpx.Timeout(self.timeout).as_dict()},
            )
            response = transport.handle_request(request)
            try:
                content = self._read(response)
            finally:
                response.close()
        seconds = time.monotonic() - began
        return RemoteResponse(response.status_code, response.headers, content, seconds)

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Send the requests of the `with` block on one connection, as long as the service does."""
        with self._new_transport() as self._kept:
            try:
                yield
            finally:
                self._kept = None

    def _new_transport(self) -> httpx.HTTPTransport:
        verify = self._tls if self.secure else False
        return httpx.HTTPTransport(verify=verify, trust_env=False)

    def _read(self, response: httpx.Response) -> bytes:
        content = bytearray()
        for chunk in response.iter_raw():
            content += chunk
            if len(content) > MAX_BODY:
                raise Unreachable(f"{self}: the answer is larger than {MAX_BODY} bytes")
        return bytes(content)

    def command(self, method: str, params: bytes, key: str) -> RemoteResponse:
        """Send a command of the server API.

        Args:
            method: its name.
            params: JSON.
            key: the API key; "" sends none.

        Raises:
            Unreachable: there is no usable answer.
            CommandError: the site's URLconf has no server API.
        """
        body = b'{"method":%b,"params":%b}' % (json.dumps(method).encode(), params)
        return self.request("POST", api_path(), _api_headers(key), body)

    def call(self, method: str, params: bytes, key: str) -> RemoteResponse:
        """As `command`, for a method of `POST /api/<method>`."""
        return self.request("POST", f"{api_path()}/{method}", _api_headers(key), params)


def _api_headers(key: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"apikey {key}"
    return headers


def api_path() -> str:
    """Return the path of the server API.

    Raises:
        CommandError: the site's URLconf has none.
    """
    path = find_api_path()
    if path is None:
        raise CommandError(f"The server API cannot be reached: {NO_API}. {ADD_API}.")
    return path


def find_api_path() -> str | None:
    """Return the path of the server API; None if the site's URLconf has none."""
    try:
        return reverse(API_URL_NAME)
    except NoReverseMatch:
        return None


def explain_api(response: RemoteResponse, config: Config) -> str:
    """Explain a status other than 200 of a request to the server API that had the key."""
    match response.status:
        case 401 if not config.api_key:
            return "The service needs a key, and api_key is not set here."
        case 401:
            return "The service has another api_key than these settings, or none."
        case 404:
            return (
                "Nothing is there: add realtime.api.urls to the URLconf, or fix the reverse proxy."
            )
        case 503:
            return (
                "The process that answers serves no clients (WSGI?) or is stopping, or the"
                " reverse proxy finds no process."
            )
        case 502 | 504:
            return "The reverse proxy does not reach the server."
        case 403:
            return "Something in front of the service refuses: reverse proxy, firewall, middleware."
        case 405:
            return "POST is refused: something other than the service answers there."
        case status if 300 <= status < 400:
            address = escape_for_terminal(response.header("Location"))
            return f"It redirects. Use the address to which it redirects: {address}"
        case _:
            return "See the log of the server."


def add_url_arguments(parser: CommandParser, what: str) -> None:
    """Add `--url` and `--timeout`.

    Args:
        parser: of the sub-command.
        what: help for `--url`.
    """
    parser.add_argument("--url", metavar="URL", help=what)
    parser.add_argument(
        "--timeout",
        type=number(float, MIN_TIMEOUT, MAX_TIMEOUT, "number of seconds"),
        default=DEFAULT_TIMEOUT,
        metavar="SECONDS",
        help=f"how long to wait for an answer from that URL (default: {DEFAULT_TIMEOUT:g})",
    )


def _why(error: BaseException, timeout: float) -> str:
    """Return what an error of the network or HTTP means, by what first caused it."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    match error:
        case TimeoutError():
            return f"no answer within {timeout:g} s"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not accepted ({error.verify_message})"
        case ssl.SSLError():
            return "it does not speak TLS as https needs it"
        case ConnectionRefusedError():
            return "nothing listens there"
        case socket.gaierror():
            return "there is no such host"
        case ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError():
            return "the connection was closed without an answer"
        case OSError() | UnicodeError():
            return str(error)
        case _ if "disconnected" in str(error):  # httpcore has no exception of its own for it
            return "the connection was closed without an answer"
        case _:
            return "what answers does not speak HTTP (is it https?)"
