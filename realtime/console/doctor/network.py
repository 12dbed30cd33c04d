"""What a client, a browser and the server API meet at the URL of the service."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import partial

import realtime
from realtime.config import origins
from realtime.console import websocket
from realtime.console.base import shown
from realtime.console.doctor.finding import Check, Finding, fail, ok, skip, warn
from realtime.console.doctor.service import Service
from realtime.console.doctor.site import FOREIGN_ORIGIN
from realtime.console.remote import ADD_API, NO_API, Response, explain_api, find_api_path
from realtime.console.websocket import NO_CLOSE_FRAME
from realtime.errors import DisconnectBadRequest, DisconnectInvalidToken, TokenExpired
from realtime.transports.servers import daphne

SLOW = 1.0
"""Seconds a connect may take before users notice."""
SKEW_WARN = 5.0
SKEW_FAIL = 60.0
"""Seconds between two clocks."""

SERVERS = ("daphne", "uvicorn", "granian", "hypercorn")

PROXY_HEADERS = (
    "The proxy does not pass the upgrade on. nginx: proxy_http_version 1.1;"
    ' proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'
)
WRAP = (
    "Is asgi.py `application = realtime.asgi.application(get_asgi_application())`, does an ASGI"
    " server run it (not WSGI), and does the proxy lead this path there?"
)
NOT_UPGRADED: Mapping[int, str] = {
    200: f"Something else answers at this path. {WRAP}",
    400: (
        "The server or the proxy refuses the request itself: look at ALLOWED_HOSTS and the Host"
        " header that the proxy passes on."
    ),
    401: "Something in front of the service asks for a password: let this path through.",
    403: (
        "The handshake is refused: the path is not that of the service, asgi.py does not wrap"
        " the site, the service could not start (see its log), or a firewall refuses."
    ),
    404: f"Nothing is there. {WRAP}",
    426: PROXY_HEADERS,
    500: f"The application failed; its log says why. {WRAP}",
    502: "The proxy does not reach the server: does it run, and where does it listen?",
    503: "The service could not start (see its log), or the proxy finds no server.",
    504: "The proxy gets no answer of the server.",
}
"""Status of an answer to a WebSocket handshake → what to do."""


def checks(service: Service) -> Iterator[Check]:
    """Everything that clients meet."""
    yield Check("upgrade", partial(upgrade, service))
    for name, look in (("origin", origin), ("connect", connect), ("close reason", close_reason)):
        yield Check(name, partial(_if_upgraded, service, partial(look, service)))
    for name, look in (("api", api), ("server", server), ("clock", clock), ("pings", pings)):
        yield Check(name, partial(look, service))


def _if_upgraded(service: Service, look: partial[Finding]) -> Finding:
    if not service.opens_websocket:
        return skip("there is no WebSocket to look at")
    return look()


def reach(service: Service) -> Finding:
    """Whether anything answers at the URL."""
    response = service.plain
    _ = service.plain_at
    place = response.header("Location")
    if 300 <= response.status < 400 and place:
        return fail(
            f"{service.remote} redirects to {place}",
            "Use the address it redirects to, here and in pages.",
        )
    return ok(f"{service.remote} answers in {response.seconds * 1000:.0f} ms")


def upgrade(service: Service) -> Finding:
    """Whether the endpoint opens a WebSocket."""
    if service.config.websocket_disable:
        return skip("websocket_disable is on")
    if not websocket.INSTALLED:
        return warn(
            "the package websockets is not installed, so the WebSocket was not looked at",
            'pip install "django-realtime-messaging[doctor]"',
        )
    response = service.upgrade
    what = f"{service.path} answers {response.status} to a WebSocket handshake"
    if response.status == 101:
        return ok(f"{service.path} answers 101 in {response.seconds * 1000:.0f} ms")
    if _asks_for_upgrade(response):
        return fail(f"{what}: the headers of the upgrade did not arrive", PROXY_HEADERS)
    unknown = "Look into the logs of the server and of the proxy."
    return fail(what, NOT_UPGRADED.get(response.status, unknown))


def _asks_for_upgrade(response: Response) -> bool:
    """Whether this is what the service answers to a request that asks for no WebSocket."""
    return response.status in (400, 426) and response.header("Sec-WebSocket-Version") == "13"


def origin(service: Service) -> Finding:
    """Whether pages of the site may connect, and the others are refused as configured."""
    own = service.remote.origin
    if (status := service.upgrade_from(own).status) != 101:
        return fail(
            f"pages of {own} are refused with {status}",
            f"Add {own!r} to allowed_origins, or see whether the proxy changes Origin or Host.",
        )
    patterns = service.config.allowed_origins
    if not origins.is_allowed(FOREIGN_ORIGIN, patterns):
        if service.upgrade_from(FOREIGN_ORIGIN).status == 101:
            return warn(
                f"pages of {own} may connect, but so may {FOREIGN_ORIGIN}, against allowed_origins",
                "Has the service other options than these settings, or does the proxy drop Origin?",
            )
        return ok(f"pages of {own} may connect, those of {FOREIGN_ORIGIN} may not")
    return ok(f"pages of {own} may connect")


def connect(service: Service) -> Finding:
    """Whether a client with a token made here is let in, and how fast."""
    if not service.mints:
        return skip("no token can be made here: the service uses no token_hmac_secret_key")
    visit = service.connected
    if visit.closed is not None:
        code, reason = visit.closed
        if code == DisconnectInvalidToken.code:
            return fail(
                "the service does not accept a token made here",
                "It has another token_hmac_secret_key than these settings.",
            )
        return fail(
            f"the connection was closed with {code} {reason}", "Look into the log of the service."
        )
    assert visit.reply is not None
    error = visit.reply.get("error")
    if isinstance(error, dict):
        text = f"a new token is answered with error {error.get('code')} {error.get('message')}"
        if error.get("code") == TokenExpired.code:
            return fail(text, "The clock of the service is ahead: run NTP on both machines.")
        return fail(text, "Look into the log of the service.")
    result = visit.reply.get("result")
    if not isinstance(result, dict) or not result.get("client"):
        return fail("what answers there does not speak the protocol", WRAP)
    took = f"{visit.seconds * 1000:.0f} ms"
    if (version := result.get("version")) != realtime.__version__:
        return warn(
            f"the service has version {version}, here it is {realtime.__version__}",
            "Restart the service after an update.",
        )
    if visit.seconds > SLOW:
        return warn(
            f"a connect took {took}", "Is the machine, or a connect hook, overloaded or far away?"
        )
    return ok(f"a client with a token made here is connected in {took}")


def close_reason(service: Service) -> Finding:
    """Whether the disconnect advice arrives in the close frame."""
    closed = service.refusal
    if closed is None:
        return fail("the service answers what is no command", WRAP)
    if closed.code == NO_CLOSE_FRAME:
        return warn(
            "the connection breaks without a close frame",
            "Clients do not learn why they were closed. granian does this; another server, or the"
            " proxy, should not.",
        )
    if closed.code != DisconnectBadRequest.code:
        return warn(
            f"the service closes with {DisconnectBadRequest.code}, {closed.code} arrives",
            "Clients do not learn why they were closed: what changes close frames on the way?",
        )
    if closed.reason != DisconnectBadRequest.advice:
        return warn(
            "the close frame has no disconnect advice",
            "Clients may come back when they should not. Under daphne: is its version one of"
            " requirements.txt, and does a middleware wrap the application?",
        )
    return ok("the disconnect advice arrives")


def api(service: Service) -> Finding:
    """Whether the server API works with the key, and only with it."""
    config = service.config
    if config.api_disable:
        return skip("api_disable is on")
    if find_api_path() is None:
        return skip(NO_API, f"{ADD_API}, if you want to use it.")
    if not service.asks:
        return skip("the server API is closed", "Set api_key, if you want to use it.")
    response = service.info
    if response.status != 200:
        return fail(f"the server API answers {response.status}", explain_api(response, config))
    if service.ask("info", key="").status == 200:
        judge = warn if config.api_insecure else fail
        return judge(
            "the server API needs no key", "Set api_key and turn api_insecure off in the service."
        )
    if service.ask("info", key=uuid.uuid4().hex).status == 200:
        return fail("the server API accepts any key", "Does the proxy add a key of its own?")
    if not service.remote.secure and not _is_local(service):
        return warn("the server API works with the key, which travels unencrypted", "Use https.")
    return ok("the server API answers with the key and refuses without it")


def _is_local(service: Service) -> bool:
    return str(service.remote).split("://", 1)[1].startswith(("127.", "localhost", "[::1]"))


def server(service: Service) -> Finding:
    """Which server it is, and whether our daphne module fits."""
    name = service.plain.header("Server")
    if not name:
        return skip("the answer does not say which server it is")
    kind = next((known for known in SERVERS if known in name.lower()), "")
    if kind == "daphne":
        if (reason := daphne.problem()) is not None:
            return warn(
                f"daphne, which cannot take our protocol: {reason}",
                "Use a version of daphne from requirements.txt.",
            )
        return ok("daphne, and our module for it fits")
    return ok(kind or f"{shown(name)} answers, in front of the ASGI server")


def clock(service: Service) -> Finding:
    """Whether the clock of the service agrees with the one here."""
    measured = _skew_by_token(service)
    if measured is None:
        measured = _skew_by_date(service)
    if measured is None:
        return skip("no answer tells the time of the service")
    return judge_skew(measured, "the clock of the service")


def judge_skew(skew: float, whose: str) -> Finding:
    """`skew`: seconds by which a clock is ahead of the one here."""
    if abs(skew) < SKEW_WARN:
        return ok(f"{whose} agrees with the one here")
    direction = "ahead of" if skew > 0 else "behind"
    found = f"{whose} is {abs(skew):.0f} s {direction} the one here"
    advice = "Tokens expire early or late: run NTP on all machines."
    return warn(found, advice) if abs(skew) < SKEW_FAIL else fail(found, advice)


def _skew_by_token(service: Service) -> float | None:
    """By the time that the service says a token of ours has left."""
    if not service.mints or not service.opens_websocket:
        return None
    visit = service.connected
    result = (visit.reply or {}).get("result")
    ttl = result.get("ttl") if isinstance(result, dict) else None
    if not isinstance(ttl, int) or ttl <= 0:
        return None
    # whole seconds are told: half of one is the middle of what was cut off
    return visit.expires_at - ttl - 0.5 - visit.answered_at


def _skew_by_date(service: Service) -> float | None:
    """By the header Date."""
    try:
        date = parsedate_to_datetime(service.plain.header("Date"))
    except ValueError:
        return None
    return date.timestamp() - service.plain_at


def pings(service: Service) -> Finding:
    """What cannot be measured in a moment."""
    return skip(
        "how long an idle connection lives takes minutes to find out",
        "The ASGI server pings idle clients (python -m realtime: after 25 s; daphne"
        " --ping-interval, uvicorn --ws-ping-interval: 20 s). The proxy must wait longer than"
        " that; nginx: proxy_read_timeout 60s.",
    )
