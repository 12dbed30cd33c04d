"""Checks of the settings of this site, without any request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.conf import settings
from django.db import DatabaseError

from realtime.checks import access
from realtime.config import origins as origin_patterns
from realtime.config.options import Config
from realtime.hooks.registry import registry
from realtime.hooks.site import GROUPS
from realtime.server_api.durable import PendingRows
from realtime.serving import serving
from realtime.tools.base import count
from realtime.tools.doctor.finding import DoctorCheck, Finding, fail, ok, skip, warn

MIN_TOKEN_SECRET = 32
"""Least bytes of an HMAC SHA-256 key (RFC 7518, 3.2)."""
MIN_API_KEY = 16
"""Least bytes of a key that cannot be guessed by trying."""

FOREIGN_ORIGIN = "https://elsewhere.invalid"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


def checks(config: Config) -> Iterator[DoctorCheck]:
    """Yield the checks of the settings."""
    for name, check in (
        ("ways in", ways_in),
        ("secrets", weak_secrets),
        ("debug", debug),
        ("origins", origins),
        ("database", database),
    ):
        yield DoctorCheck(name, partial(check, config))
    if serving.pending is not None:
        yield DoctorCheck("pending", partial(pending, serving.pending))


def pending(rows: PendingRows) -> Finding:
    """Check that durable publications do not wait."""
    try:
        overview = rows.overview()
    except DatabaseError as error:
        return fail(f"durable publications cannot be read: {error}", "Run manage.py migrate.")
    if overview.is_late:
        return warn(
            f"{count(overview.waiting, 'durable publication')} waiting, the oldest for"
            f" {overview.oldest:.0f} s",
            "Any process that serves clients publishes them: see its log, and the engine's.",
        )
    if overview.parked:
        return warn(
            f"{count(overview.parked, 'durable publication')} parked",
            "See manage.py realtime pending: retry or drop them.",
        )
    return ok("no durable publication waits longer than it should")


def ways_in(config: Config) -> Finding:
    """Check that clients can connect at all."""
    open_ways = access.ways_in(config)
    if not open_ways:
        return fail(
            "no client can connect",
            "Set token_hmac_secret_key (manage.py realtime genconfig makes one), or turn"
            " session_authentication on.",
        )
    return ok(f"clients connect with {' or '.join(open_ways)}")


def weak_secrets(config: Config) -> Finding:
    """Check the length of secrets, without showing them."""
    short = [
        f"{name} has {count(len(value.encode()), 'byte')} and should have {least}"
        for name, value, least in (
            ("token_hmac_secret_key", config.connection_tokens.hmac_secret_key, MIN_TOKEN_SECRET),
            ("api_key", config.api_key, MIN_API_KEY),
        )
        if value and len(value.encode()) < least
    ]
    if short:
        return warn("; ".join(short), "manage.py realtime genconfig makes new ones.")
    return ok("long enough")


def debug(config: Config) -> Finding:
    """Check that protection is on outside of development."""
    insecure = [name for name in ("client_insecure", "api_insecure") if getattr(config, name)]
    if insecure and not settings.DEBUG:
        return fail(
            f"{' and '.join(insecure)} without DEBUG: anyone may do anything",
            "Turn it off: these options are for development.",
        )
    if insecure:
        return warn(f"DEBUG and {' and '.join(insecure)} are on", "For development only.")
    if settings.DEBUG:
        return warn("DEBUG is on", "For development only: Django then keeps every SQL query.")
    return ok("DEBUG and the insecure options are off")


def origins(config: Config) -> Finding:
    """Check that pages of this site may connect, and no pages that should not."""
    patterns = config.allowed_origins
    if patterns is None:
        if config.session_authentication:
            return ok("allowed_origins is not set: sessions count for pages of the same host only")
        return ok("allowed_origins is not set: pages of any origin may connect, with a token")
    if not patterns:
        return warn(
            "allowed_origins is empty: no page of any browser may connect",
            "List the origins of your pages, for example https://example.org",
        )
    if config.session_authentication and origin_patterns.is_allowed(FOREIGN_ORIGIN, patterns):
        return fail(
            "allowed_origins accepts any origin, and login sessions identify clients: every page"
            " on the web can connect as its visitor",
            "List the origins of your own pages in allowed_origins.",
        )
    refused = [
        host
        for host, candidates in _own_origins()
        if not any(origin_patterns.is_allowed(candidate, patterns) for candidate in candidates)
    ]
    if refused:
        return warn(
            f"allowed_origins accepts no page of {', '.join(refused)}, which this site serves",
            "Add their origins if those pages need to connect.",
        )
    return ok("allowed_origins accepts the pages of this site")


def _own_origins() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the hosts in the settings of this site, with the origins of their pages."""
    for trusted in settings.CSRF_TRUSTED_ORIGINS:
        yield trusted, (trusted.replace("*", "www"),)
    for host in settings.ALLOWED_HOSTS:
        if host != "*" and host not in LOCAL_HOSTS:
            name = f"www{host}" if host.startswith(".") else host
            yield host, (f"https://{name}", f"http://{name}")


def database(config: Config) -> Finding:
    """Check that the threads that run hooks keep no database connections."""
    if not (registry or config.session_authentication):
        return skip("neither hooks nor sessions use the database")
    kept = [
        f"{alias} ({options['CONN_MAX_AGE']})"
        for alias, options in settings.DATABASES.items()
        if options.get("CONN_MAX_AGE", 0) != 0
    ]
    if kept:
        threads = count(len(GROUPS) * config.hook_workers, "thread")
        return warn(
            f"CONN_MAX_AGE is set for {', '.join(kept)}: up to"
            f" {threads} of each process keep a connection",
            "Set it to 0, as Django advises under ASGI. If connecting is slow, use a pool.",
        )
    return ok("CONN_MAX_AGE is 0: connections are closed after each hook")
