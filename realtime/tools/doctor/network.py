"""Checks of the service as clients, browsers and publishers reach it at its URL."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import partial

from realtime.auth.issue import unnamed_party
from realtime.config import origins
from realtime.config.options import Config
from realtime.engine import factory
from realtime.errors import DisconnectBadRequest, DisconnectInvalidToken, TokenExpired
from realtime.monitoring.application import READY
from realtime.tools import websocket
from realtime.tools.base import escape_for_terminal
from realtime.tools.doctor import login
from realtime.tools.doctor.finding import DoctorCheck, Finding, fail, ok, skip, warn
from realtime.tools.doctor.service import RunningService
from realtime.tools.doctor.site import FOREIGN_ORIGIN
from realtime.tools.remote import ADD_API, NO_API, RemoteResponse, explain_api, find_api_path
from realtime.tools.websocket import NO_CLOSE_FRAME
from realtime.transports.servers import daphne

SLOW = 1.0
"""Seconds a connect may take before users notice."""
SKEW_WARN = 5.0
SKEW_FAIL = 60.0
"""Seconds between two clocks."""

SERVERS = ("daphne", "uvicorn", "gunicorn", "granian", "hypercorn")

PROXY_HEADERS = (
    "The reverse proxy does not forward the upgrade. nginx: proxy_http_version 1.1;"
    ' proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'
)
WRAP = (
    "Check that asgi.py has `application = realtime.asgi.application(get_asgi_application())`,"
    " that an ASGI server runs it (not WSGI), and that the reverse proxy sends this path there."
)
NOT_UPGRADED: Mapping[int, str] = {
    200: f"Something else answers at this path. {WRAP}",
    400: (
        "The server or the reverse proxy refuses the request itself: see ALLOWED_HOSTS, and the"
        " header Host that the reverse proxy sends."
    ),
    401: "Something in front of the service asks for a password: exempt this path.",
    403: (
        "The handshake is refused: the path is not that of the service, asgi.py does not wrap"
        " the site, the service could not start (see its log), or a firewall refuses it."
    ),
    404: f"Nothing is there. {WRAP}",
    426: PROXY_HEADERS,
    500: f"The application failed; its log says why. {WRAP}",
    502: "The reverse proxy does not reach the server. Check that it runs, and where it listens.",
    503: "The service could not start (see its log), or the reverse proxy finds no server.",
    504: "The reverse proxy gets no answer from the server.",
}
"""Status of the answer to a WebSocket handshake → advice."""


def checks(service: RunningService, user: str = "") -> Iterator[DoctorCheck]:
    """Yield the checks of the service; `user` logs in, "" for nobody."""
    if service.config.health:
        yield DoctorCheck("ready", partial(ready, service))
    yield DoctorCheck("upgrade", partial(upgrade, service))
    for name, check in (("origin", origin), ("connect", connect), ("close reason", close_reason)):
        yield DoctorCheck(name, partial(_if_upgraded, service, partial(check, service)))
    if service.config.session_authentication:
        yield DoctorCheck("host", partial(login.host, service))
    if user or service.config.session_authentication:
        yield DoctorCheck(
            "login", partial(_if_upgraded, service, partial(login.check, service, user))
        )
    for name, check in (("api", api), ("server", server), ("clock", clock), ("pings", pings)):
        yield DoctorCheck(name, partial(check, service))


def _if_upgraded(service: RunningService, check: partial[Finding]) -> Finding:
    if not service.opens_websocket:
        return skip("no WebSocket was opened")
    return check()


def reach(service: RunningService) -> Finding:
    """Check that something answers at the URL."""
    response = service.plain
    _ = service.plain_at
    place = response.header("Location")
    if 300 <= response.status < 400 and place:
        return fail(
            f"{service.remote} redirects to {place}",
            "Use the address to which it redirects, here and in pages.",
        )
    return ok(f"{service.remote} answers in {response.seconds * 1000:.0f} ms")


def ready(service: RunningService) -> Finding:
    """Check that the service says that it is ready for clients."""
    response = service.ready
    if response.status == 200:
        return ok("the service is ready for clients")
    if response.status == 503:
        server = factory.server_name(service.config) or "the engine"
        return fail(
            f"the service is not ready: {server} does not answer in time, or the process drains",
            f"Look at the check of {server}. A process that drains is about to end.",
        )
    return warn(
        f"{service.config.health_handler_prefix}{READY} answers {response.status}",
        "Let the reverse proxy pass it on, or ask the processes themselves.",
    )


def upgrade(service: RunningService) -> Finding:
    """Check that the endpoint opens a WebSocket."""
    if service.config.websocket_disable:
        return skip("websocket_disable is on")
    if not websocket.INSTALLED:
        return warn(
            "the package websockets is not installed, so the WebSocket was not checked",
            'pip install "django-realtime-messaging[doctor]"',
        )
    response = service.upgrade
    what = f"{service.path} answers {response.status} to a WebSocket handshake"
    if response.status == 101:
        return ok(f"{service.path} answers 101 in {response.seconds * 1000:.0f} ms")
    if _asks_for_upgrade(response):
        return fail(f"{what}: the headers of the upgrade did not arrive", PROXY_HEADERS)
    unknown = "See the logs of the server and of the reverse proxy."
    return fail(what, NOT_UPGRADED.get(response.status, unknown))


def _asks_for_upgrade(response: RemoteResponse) -> bool:
    """Return whether this is the answer of the service to a request without upgrade."""
    return response.status in (400, 426) and response.header("Sec-WebSocket-Version") == "13"


def origin(service: RunningService) -> Finding:
    """Check that pages of the site may connect, and that others are refused as configured."""
    own = service.remote.origin
    if (status := service.upgrade_from(own).status) != 101:
        return fail(
            f"pages of {own} are refused with {status}",
            f"Add {own!r} to allowed_origins. Does the reverse proxy change Origin or Host?",
        )
    patterns = service.config.allowed_origins
    if not origins.is_allowed(FOREIGN_ORIGIN, patterns):
        if service.upgrade_from(FOREIGN_ORIGIN).status == 101:
            return warn(
                f"pages of {own} may connect, but so may {FOREIGN_ORIGIN}, against allowed_origins",
                "Does the service run with other options, or does the reverse proxy remove the"
                " header Origin?",
            )
        return ok(f"pages of {own} may connect, those of {FOREIGN_ORIGIN} may not")
    return ok(f"pages of {own} may connect")


def connect(service: RunningService) -> Finding:
    """Check that a client with a token made here can connect, and how fast."""
    if not service.signs_tokens:
        why = "the service uses no token_hmac_secret_key"
        if service.config.connection_tokens.hmac_secret_key and (
            party := unnamed_party(service.config.connection_tokens)
        ):
            why = f"token_{party} does not say whom to name in it"
        return skip(f"no token can be made here: {why}")
    result = service.connected
    if result.closed is not None:
        code, reason = result.closed
        if code == DisconnectInvalidToken.code:
            return fail(
                "the service does not accept a token made here",
                "It has another token_hmac_secret_key than these settings.",
            )
        return fail(
            f"the connection was closed with {code} {reason}", "See the log of the service."
        )
    assert result.reply is not None
    error = result.reply.get("error")
    if isinstance(error, dict):
        text = f"a new token is answered with error {error.get('code')} {error.get('message')}"
        if error.get("code") == TokenExpired.code:
            return fail(text, "The clock of the service is ahead: run NTP on both machines.")
        return fail(text, "See the log of the service.")
    connected = result.reply.get("result")
    if not isinstance(connected, dict) or not connected.get("client"):
        return fail("the endpoint does not speak the protocol of the service", WRAP)
    took = f"{result.seconds * 1000:.0f} ms"
    if result.seconds > SLOW:
        return warn(
            f"a connect took {took}", "Is the machine or a connect hook overloaded, or far away?"
        )
    return ok(f"a client with a token made here is connected in {took}")


def close_reason(service: RunningService) -> Finding:
    """Check that the disconnect advice arrives in the close frame."""
    closed = service.refusal
    if closed is None:
        return fail("the service answers a malformed frame", WRAP)
    if closed.code == NO_CLOSE_FRAME:
        return warn(
            "the connection breaks without a close frame",
            "Clients do not learn why they were closed. Does a reverse proxy cut connections?",
        )
    if closed.code != DisconnectBadRequest.code:
        return warn(
            f"the service closes with {DisconnectBadRequest.code}, but {closed.code} arrives",
            "Clients do not learn why they were closed: something changes close frames.",
        )
    if closed.reason != DisconnectBadRequest.advice:
        return warn(
            "the close frame has no disconnect advice",
            "Clients may reconnect when they should not. Under daphne, use the version in"
            " requirements.txt, and no ASGI middleware around the application.",
        )
    return ok("the disconnect advice arrives")


def api(service: RunningService) -> Finding:
    """Check that the server API works with the key, and only with it."""
    config = service.config
    if config.api_disable:
        return skip("api_disable is on")
    if find_api_path() is None:
        return skip(NO_API, f"{ADD_API} to use it.")
    if not service.api_is_open:
        return skip("the server API is closed", "Set api_key to use it.")
    response = service.info
    if response.status != 200:
        return fail(f"the server API answers {response.status}", explain_api(response, config))
    if service.ask("info", key="").status == 200:
        judge = warn if config.api_insecure else fail
        return judge(
            "the server API needs no key", "Set api_key and turn api_insecure off in the service."
        )
    if service.ask("info", key=uuid.uuid4().hex).status == 200:
        return fail("the server API accepts any key", "Does the reverse proxy add one?")
    if not service.remote.secure and not _is_local(service):
        return warn("the server API works with the key, which travels unencrypted", "Use https.")
    return ok("the server API answers with the key and refuses without it")


def _is_local(service: RunningService) -> bool:
    return str(service.remote).split("://", 1)[1].startswith(("127.", "localhost", "[::1]"))


def server(service: RunningService) -> Finding:
    """Report the server, and check that our module for daphne fits its version."""
    name = service.plain.header("Server")
    if not name:
        return skip("the answer does not name the server")
    kind = next((known for known in SERVERS if known in name.lower()), "")
    if kind == "daphne":
        if (reason := daphne.problem()) is not None:
            return warn(
                f"daphne, but our module does not fit this version: {reason}",
                "Use the version in requirements.txt.",
            )
        return ok("daphne, and our module fits its version")
    return ok(kind or f"{escape_for_terminal(name)} answers, in front of the ASGI server")


def clock(service: RunningService) -> Finding:
    """Check that the clock of the service agrees with the one here."""
    measured = _skew_by_token(service)
    if measured is None:
        measured = _skew_by_date(service)
    if measured is None:
        return skip("no answer holds the time of the service")
    return judge_skew(measured, "the clock of the service")


def judge_skew(skew: float, whose: str) -> Finding:
    """Return the finding about a clock.

    Args:
        skew: seconds by which it is ahead of the one here.
        whose: its name.
    """
    if abs(skew) < SKEW_WARN:
        return ok(f"{whose} agrees with the one here")
    direction = "ahead of" if skew > 0 else "behind"
    found = f"{whose} is {abs(skew):.0f} s {direction} the one here"
    advice = "Tokens expire early or late: run NTP on all machines."
    return warn(found, advice) if abs(skew) < SKEW_FAIL else fail(found, advice)


def judge_clock(config: Config, server: str, read: Callable[[], float]) -> Finding:
    """Compare the clock of the server of the engine with the one here.

    Positions of pages allow a difference of `page_margin`; above half of it is little reserve. A
    smaller difference than the question took is not known to be one.

    Args:
        server: its name.
        read: returns its Unix time.
    """
    before = time.time()
    there = read()
    after = time.time()
    skew = there - (before + after) / 2
    finding = judge_skew(skew, f"the clock of {server}")
    if finding.status == "ok" and abs(skew) > max(config.page_margin / 2, after - before):
        return warn(
            f"the clock of {server} differs by {abs(skew):.1f} s from the one here, more than half"
            f" of page_margin ({config.page_margin:g} s)",
            "Run NTP on all machines, or raise page_margin: pages may miss publications.",
        )
    return finding


def _skew_by_token(service: RunningService) -> float | None:
    """Return the skew by the remaining lifetime that the service reports for our token."""
    if not service.signs_tokens or not service.opens_websocket:
        return None
    connected = service.connected
    result = (connected.reply or {}).get("result")
    ttl = result.get("ttl") if isinstance(result, dict) else None
    if not isinstance(ttl, int) or ttl <= 0:
        return None
    # the reply holds whole seconds: half a second is the mean of the rest
    return connected.expires_at - ttl - 0.5 - connected.answered_at


def _skew_by_date(service: RunningService) -> float | None:
    """Return the skew by the header Date."""
    try:
        date = parsedate_to_datetime(service.plain.header("Date"))
    except ValueError:
        return None
    return date.timestamp() - service.plain_at


def pings(service: RunningService) -> Finding:
    """Remind of idle timeouts, which cannot be measured in a moment."""
    return skip(
        "the lifetime of an idle connection takes minutes to measure",
        "The ASGI server pings idle clients (python -m realtime: after 25 s; daphne"
        " --ping-interval, uvicorn --ws-ping-interval: 20 s). The reverse proxy must wait longer"
        " than that; nginx waits 60 s by default (proxy_read_timeout).",
    )
