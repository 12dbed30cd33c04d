"""Remote: a running service at a URL, reached by HTTP as anybody would.

The standard library's client is used: it takes the certificates of the operating system, goes
through no proxy of the environment, and lets a WebSocket handshake be looked at.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

from django.core.management.base import CommandError, CommandParser
from django.urls import NoReverseMatch, reverse

from realtime.asgi import API_URL_NAME
from realtime.config.options import Config
from realtime.console.base import shown

DEFAULT_TIMEOUT = 5.0
TIMEOUT_MAX = 3600.0
"""Seconds."""


NO_API = "the URLconf has no server API"
ADD_API = 'Add path("api", include("realtime.api.urls"))'


class Unreachable(Exception):
    """There is no answer. The text says why; it holds neither keys nor tokens."""


class Response(NamedTuple):
    """An answer, and the seconds it took."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    seconds: float

    def header(self, name: str) -> str:
        """The value of a header, "" when there is none."""
        return self.headers.get(name, "")


class Remote:
    """The service of the site at a URL."""

    def __init__(self, url: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        """
        Args:
            url: scheme, host and port of the site; with a path where the site has one.
            timeout: seconds to wait for each answer.

        Raises:
            CommandError: this is no such URL.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise CommandError("--url is not a URL.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError("--url is the address of the site, such as https://example.org.")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise CommandError("--url takes no user, no password, no query and no fragment.")
        self.secure = parts.scheme == "https"
        self.origin = f"{parts.scheme}://{parts.netloc.lower()}"
        """What browsers send as Origin from pages of this site."""
        self.timeout = timeout
        self._host, self._port = parts.hostname, port
        self._path = parts.path.rstrip("/")

    def __str__(self) -> str:
        return self.origin + self._path

    def path(self, path: str) -> str:
        """A path of the site, behind the path of the URL."""
        if not self._path or path.startswith(f"{self._path}/"):
            return path
        return self._path + path

    @contextmanager
    def connection(self) -> Iterator[HTTPConnection]:
        """A new connection for one request.

        Raises:
            Unreachable: whatever goes wrong inside of the `with` block.
        """
        kind = HTTPSConnection if self.secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=self.timeout)
        try:
            yield connection
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise Unreachable(f"{self}: {_why(error, self.timeout)}") from error
        finally:
            connection.close()

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send a request; redirections are not followed.

        Raises:
            Unreachable
        """
        began = time.monotonic()
        with self.connection() as connection:
            connection.request(method, self.path(path), body, dict(headers))
            answer = connection.getresponse()
            content = answer.read()
        return Response(answer.status, answer.headers, content, time.monotonic() - began)

    def command(self, method: str, params: bytes, key: str) -> Response:
        """Send a command of the server API; `key` "" sends none, `params` are JSON.

        Raises:
            Unreachable
            CommandError: the site's URLconf has no server API.
        """
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"apikey {key}"
        body = b'{"method":%b,"params":%b}' % (json.dumps(method).encode(), params)
        return self.request("POST", api_path(), headers, body)


def api_path() -> str:
    """The path of the server API.

    Raises:
        CommandError: the site's URLconf has none.
    """
    path = find_api_path()
    if path is None:
        raise CommandError(f"There is no path to it: {NO_API}. {ADD_API}.")
    return path


def find_api_path() -> str | None:
    """The path of the server API; None where the site's URLconf has none."""
    try:
        return reverse(API_URL_NAME)
    except NoReverseMatch:
        return None


def explain_api(response: Response, config: Config) -> str:
    """What a status that is not 200 means for a request to the server API that had the key."""
    match response.status:
        case 401 if not config.api_key:
            return "The service asks for a key, and api_key is not set here."
        case 401:
            return "The service has another api_key than these settings, or none."
        case 404:
            return "Nothing is there: add realtime.api.urls to the URLconf, or mend the proxy."
        case 503:
            return (
                "The process that answers serves no clients (WSGI?), is stopping, or the proxy"
                " finds no process."
            )
        case 502 | 504:
            return "The proxy does not reach the server."
        case 403:
            return "Something in front of the service refuses: a proxy, a firewall, middleware."
        case 405:
            return "POST is refused: something else than the service answers there."
        case status if 300 <= status < 400:
            address = shown(response.header("Location"))
            return f"It redirects; use the address it redirects to: {address}"
        case _:
            return "Look into the log of the server."


def add_url_arguments(parser: CommandParser, what: str) -> None:
    """`--url` and `--timeout`."""
    parser.add_argument("--url", metavar="URL", help=what)
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=DEFAULT_TIMEOUT,
        metavar="SECONDS",
        help=f"how long to wait for an answer of that URL (default: {DEFAULT_TIMEOUT:g})",
    )


def _seconds(text: str) -> float:
    """Seconds, more than none.

    Raises:
        ValueError: argparse makes a message of it.
    """
    seconds = float(text)
    if not 0 < seconds <= TIMEOUT_MAX:
        raise ValueError
    return seconds


_seconds.__name__ = "number of seconds"


def _why(error: Exception, timeout: float) -> str:
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
        case ConnectionError() | http.client.RemoteDisconnected():
            return "the connection was closed without an answer"
        case http.client.HTTPException():
            return "what answers does not speak HTTP (is it https?)"
        case _:
            return str(error)
