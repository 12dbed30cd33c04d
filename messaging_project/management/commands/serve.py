"""`manage.py serve`: print what a first look needs, then run the server."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import socket
import sys
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.urls import reverse

from messaging_project.demo import publish_line
from realtime import tokens
from realtime.config import sources

OPERATOR = "operator"
TOKEN_USER = "demo"
TOKEN_DAYS = 7

_ANY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""An address that means "every interface" → one a browser can open."""


class Command(BaseCommand):
    """Prints addresses, and becomes daphne: signals reach it directly."""

    help = "Serve the site with daphne; prints addresses, a token and a line to publish with."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")

    def handle(self, *args: Any, **options: Any) -> None:
        host: str = options["host"]
        port: int = options["port"]
        check_address(host, port)
        password = create_operator()
        base = base_url(host, port)
        self.stdout.write(describe(base))
        if password is not None:
            self.stdout.write(f"Sign in to the admin as {OPERATOR}, password {password}")
            change = manage_command("changepassword", OPERATOR)
            self.stdout.write(f"(shown this once; change it with: {change})\n\n")
        self.stdout.write(token_lines())
        self.stdout.write(publish_lines(base))
        self.stdout.write("Ctrl-C stops the server.")
        run_daphne(host, port)


def check_address(host: str, port: int) -> None:
    """Check that a server can listen there, for a clearer message than the server's.

    Raises:
        CommandError: the address is in use, or is not one of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"Port {port} of {host} is in use. Stop the program that uses it, or choose another"
                f" port, for example: make run PORT={port + 1}"
            ) from None
        raise CommandError(f"Cannot listen on {host} port {port}: {error.strerror}.") from None
    except OverflowError:
        raise CommandError(f"{port} is not a port; use 1 to 65535.") from None


def base_url(host: str, port: int) -> str:
    """Return the address to open in a browser on this machine."""
    host = _ANY_INTERFACE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def create_operator() -> str | None:
    """Make a superuser if there are no users.

    Returns:
        Its password; None if there are users already.

    Raises:
        CommandError: the database has no tables yet.
    """
    users = get_user_model()._default_manager
    try:
        if users.exists():
            return None
        password = secrets.token_urlsafe(12)
        users.create_superuser(OPERATOR, password=password)
    except DatabaseError as error:
        raise CommandError(
            f"The database is not ready ({error}). Run this first: {manage_command('migrate')}"
        ) from error
    return password


def manage_command(*words: str) -> str:
    """Return a management command as it works from the present directory, with this Python."""
    return shlex.join([_shortest(sys.executable), _shortest(sys.argv[0]), *words])


def _shortest(path: str) -> str:
    """Return a path relative to the present directory if it is below, else absolute."""
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute)
    return absolute if relative.startswith(os.pardir) else relative


def describe(base: str) -> str:
    """Return the addresses, one a line."""
    socket_url = "ws" + base.removeprefix("http") + sources.current().websocket_handler_prefix
    places = {
        **({"Demo page": base + reverse("demo")} if settings.DEMO else {}),
        "Admin": base + reverse("admin:index"),
        **({"Panel": base + reverse("realtime_panel:overview")} if sources.current().admin else {}),
        "WebSocket": socket_url,
        "HTTP API": base + reverse("realtime_api:commands"),
    }
    return "".join(f"{name + ':':<12}{url}\n" for name, url in places.items())


def token_lines() -> str:
    """Return a token to connect with, ready to copy."""
    try:
        token = tokens.connection_token(TOKEN_USER, ttl=TOKEN_DAYS * 86400)
    except ValueError as error:
        return f"No connection token: {error}.\n"
    return f"Connection token of user {TOKEN_USER}, valid {TOKEN_DAYS} days:\n  {token}\n\n"


def publish_lines(base: str) -> str:
    """Return a command that publishes into the demo's channel, ready to copy into a terminal."""
    config = sources.current()
    if not config.api_key and not config.api_insecure:
        return "The HTTP API is closed: set api_key to use it.\n"
    key = "" if config.api_insecure else config.api_key
    line = publish_line(base + reverse("realtime_api:commands"), key)
    return f"Publish from another terminal:\n  {line}\n\n"


def run_daphne(host: str, port: int) -> None:
    """Replace this process with daphne: signals and the exit status are those of daphne."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(settings.BASE_DIR), os.environ.get("PYTHONPATH")])
        )
    }
    sys.stdout.flush()
    os.execve(
        sys.executable,
        [
            *(sys.executable, "-m", "realtime", "--host", host, "--port", str(port)),
            # no access log: addresses may carry the API key; Django's logging is as configured
            *("--verbosity", "0"),
            settings.ASGI_APPLICATION.replace(".application", ":application"),
        ],
        environment,
    )
