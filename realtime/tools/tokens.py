"""gentoken and checktoken: make and verify tokens with the configured keys.

They never show a key or a secret.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import jwt
import msgspec
from django.core.management.base import CommandError, CommandParser

from realtime.auth import issue
from realtime.auth.keys import KeysUnavailable, configured_keys
from realtime.config import sources
from realtime.config.options import Config
from realtime.tokens import ConnectToken, ExpiredToken, InvalidToken, SubscribeToken, Verifier
from realtime.tools.base import CommandResult, Options, SubCommand, count, escape_for_terminal

DEFAULT_TTL = "7d"
UNITS: Mapping[str, int] = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
NEVER = "never"

WHY: Mapping[str, str] = {
    "not in compact form": "A token has three parts with dots between them. Was all of it copied?",
    "wrong signature": "It was signed with another key, or changed afterwards.",
    "unknown key ID": "The key set has no key with this ID.",
    "not an RSA token with a key ID": (
        "With token_jwks_public_endpoint, only RSA keys of that set are accepted."
    ),
    "exp has passed": "Make a new one. If it is new, the clock where it was made is slow.",
    "nbf has not come": "Wait, or correct the clock where it was made.",
    "claims have the wrong types": "sub, client and channel must be strings, exp and nbf numbers.",
    "for another audience": "Its aud is not what token_audience or token_audience_regex names.",
    "of another issuer": "Its iss is not what token_issuer or token_issuer_regex names.",
}
"""Reason for refusing a token → explanation."""


def _ttl(text: str) -> int | None:
    """Return the seconds that a text stands for; None for never.

    Raises:
        ValueError: the text is something else; argparse turns it into a message.
    """
    if text == NEVER:
        return None
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if match is None or not int(match[1]):
        raise ValueError
    return int(match[1]) * UNITS[match[2]]


_ttl.__name__ = "time to live"  # argparse calls a wrong value an "invalid <name> value"


# gentoken


def _add_gentoken(parser: CommandParser) -> None:
    parser.add_argument("user", nargs="?", help='user ID; "" for an anonymous user')
    parser.add_argument("--client", help="client ID: make a subscription token for it")
    parser.add_argument(
        "--subscription",
        action="store_true",
        help="make a subscription token of the user for one --channel",
    )
    parser.add_argument(
        "--channel",
        action="append",
        default=[],
        metavar="CHANNEL",
        help="the private channel; in a connection token: subscribe the client to it (repeatable)",
    )
    parser.add_argument(
        "--ttl",
        type=_ttl,
        default=DEFAULT_TTL,
        help=f"time until it expires: 90, 15m, 12h, 7d or {NEVER} (default: {DEFAULT_TTL})",
    )
    parser.add_argument("--info", metavar="JSON", help="connection or channel info")


def _gentoken(options: Options) -> CommandResult:
    config = sources.current()
    user, client = options["user"], options["client"]
    of_subscription = client is not None or options["subscription"]
    kind = config.subscription_tokens if of_subscription else config.connection_tokens
    if not kind.hmac_secret_key:
        raise CommandError(
            f"{kind.name_of('hmac_secret_key')}, with which tokens are signed, is not set."
            " Make one: manage.py realtime genconfig"
        )
    channels: list[str] = options["channel"]
    ttl: int | None = options["ttl"]
    info = _read_info(options["info"])
    if client is not None:
        if user is not None or len(channels) != 1 or not client:
            raise CommandError("A subscription token needs --client and one --channel, no user.")
        token = issue.subscription_token(config, client, channels[0], ttl=ttl, info=info)
    elif options["subscription"]:
        if user is None or len(channels) != 1:
            raise CommandError("A subscription token of a user needs a user and one --channel.")
        token = issue.user_subscription_token(config, user, channels[0], ttl=ttl, info=info)
    elif user is None:
        raise CommandError(
            'Give a user: gentoken USER ("" for an anonymous user). For a subscription token:'
            " gentoken USER --channel CHANNEL --subscription, or gentoken --client ID --channel"
            " CHANNEL."
        )
    else:
        token = issue.connection_token(config, user, ttl=ttl, info=info, channels=channels)
    return CommandResult(token, {"token": token, "expires_at": _claims(token).get("exp")})


def _read_info(text: str | None) -> object:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        raise CommandError("--info is not JSON. A JSON string needs double quotes.") from None


# checktoken


def _add_checktoken(parser: CommandParser) -> None:
    parser.add_argument("token", help='the token; "-" reads it from standard input')


def _checktoken(options: Options) -> CommandResult:
    config = sources.current()
    argument: str = options["token"]
    token = (sys.stdin.readline() if argument == "-" else argument).strip()
    try:
        verified = asyncio.run(_verify(config, token))
    except ExpiredToken as error:
        # its signature is valid, so its claims may be shown
        return _refused(str(error), _dated(_claims(token)))
    except InvalidToken as error:
        return _refused(str(error), {}, _why(config, token, str(error)))
    except KeysUnavailable:
        raise CommandError(
            "The token cannot be checked: token_jwks_public_endpoint cannot be fetched."
        ) from None
    value = {"valid": True, **_described(verified, token), "algorithm": _algorithm(token)}
    return CommandResult(_text(value), value)


async def _verify(config: Config, token: str) -> ConnectToken | SubscribeToken:
    """Verify a token as a connection or subscription token, by the claims that it has.

    Raises:
        InvalidToken: it is malformed, or its signature is wrong.
        ExpiredToken: it is not valid now.
        KeysUnavailable: the key set cannot be fetched.
    """
    verifier = Verifier(config)
    try:
        if _is_subscription_token(token):
            return await verifier.subscribe(token, time.time())
        return await verifier.connect(token, time.time())
    finally:
        verifier.close()


def _is_subscription_token(token: str) -> bool:
    claims = _claims(token)
    return "client" in claims or "channel" in claims


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a token without verifying it; {} for none."""
    try:
        claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        return {}
    return claims


def _algorithm(token: str) -> str:
    try:
        return str(jwt.get_unverified_header(token).get("alg", ""))
    except (jwt.InvalidTokenError, RecursionError):
        return ""


def _described(verified: ConnectToken | SubscribeToken, token: str) -> dict[str, object]:
    """Return what a valid token says. Times are when it expires, and what it opens."""
    info = None if verified.info is None else msgspec.Raw(verified.info.json)
    exp = _claims(token).get("exp")
    expires_at = None if exp is None else float(exp)
    if isinstance(verified, ConnectToken):
        return {
            "kind": "connection",
            "user": verified.user,
            "info": info,
            "channels": verified.channels,
            "expires_at": expires_at,
            "connection_expires_at": verified.expires_at,
        }
    return {
        "kind": "subscription",
        **({} if verified.user is None else {"user": verified.user}),
        **({"client": verified.client} if verified.client else {}),
        "channel": verified.channel,
        "info": info,
        "expires_at": expires_at,
        "subscription_expires_at": verified.expires_at,
    }


def _dated(claims: Mapping[str, Any]) -> dict[str, object]:
    """Return subject and times of a token that is not valid now."""
    names = {"sub": "user", "client": "client", "channel": "channel"}
    known: dict[str, object] = {names[name]: claims[name] for name in names if name in claims}
    known |= {
        name: float(claims[claim])
        for claim, name in (("exp", "expires_at"), ("nbf", "not_before"))
        if claims.get(claim) is not None
    }
    return known


def _why(config: Config, token: str, reason: str) -> str:
    if reason != "no key for this algorithm":
        return WHY.get(reason, "")
    of_subscription = _is_subscription_token(token)
    options = config.subscription_tokens if of_subscription else config.connection_tokens
    known = ", ".join(sorted(configured_keys(options))) or "none"
    algorithm = escape_for_terminal(_algorithm(token)) or "none"
    return f"It names {algorithm}; the configured keys are for: {known}."


def _refused(reason: str, known: Mapping[str, object], why: str = "") -> CommandResult:
    why = why or WHY.get(reason, "")
    failure = f"The token is not valid: {reason}.{f' {why}' if why else ''}"
    return CommandResult(_text(known), {"valid": False, "reason": reason, **known}, failure)


def _text(known: Mapping[str, object]) -> str:
    """Return one line for each known property of a token."""
    lines = []
    if known.get("valid"):
        lines.append(f"A valid {known['kind']} token ({known['algorithm']}).")
    for name in ("user", "client", "channel"):
        if name in known:
            text = escape_for_terminal(str(known[name]))
            lines.append(f"{name + ':':<12}{text or '(anonymous)'}")
    if channels := known.get("channels"):
        assert isinstance(channels, tuple)
        lines.append(f"{'channels:':<12}{', '.join(map(escape_for_terminal, channels))}")
    if isinstance(info := known.get("info"), msgspec.Raw):
        lines.append(f"{'info:':<12}{escape_for_terminal(bytes(info).decode())}")
    for name, label in (("not_before", "not before"), ("expires_at", "expires")):
        if isinstance(moment := known.get(name), float):
            lines.append(f"{label + ':':<12}{_moment(moment)}")
    if known.get("valid"):
        if known["expires_at"] is None:
            lines.append(f"{'expires:':<12}{NEVER}")
        until = known[f"{known['kind']}_expires_at"]
        if until != known["expires_at"]:
            moment_of_end = _moment(until) if isinstance(until, float) else NEVER
            lines.append(f"the {known['kind']} expires: {moment_of_end}")
    return "\n".join(lines)


def _moment(unix: float) -> str:
    """Return a time and its distance from now."""
    seconds = abs(unix - time.time())
    unit, name = next(
        ((size, name) for size, name in ((86400, "day"), (3600, "hour"), (60, "minute"))
         if seconds >= size),
        (1, "second"),
    )  # fmt: skip
    distance = count(int(seconds / unit), name)
    try:
        text = datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        text = f"{unix:g}"
    return f"{text} (in {distance})" if unix > time.time() else f"{text} ({distance} ago)"


SUB_COMMANDS = (
    SubCommand(
        "gentoken",
        "Make a connection token for a user, or a subscription token.",
        _add_gentoken,
        _gentoken,
        "Make a token, signed with token_hmac_secret_key, and print it.\n\n"
        "  gentoken 17                             user 17 may connect, for 7 days\n"
        '  gentoken 17 --ttl 1h --info \'{"name": "Ann"}\'\n'
        "  gentoken --client ID --channel '$chat:staff'\n"
        "                                          that connection may subscribe",
    ),
    SubCommand(
        "checktoken",
        "Verify a token with the configured keys; print its claims, or why it is not valid.",
        _add_checktoken,
        _checktoken,
    ),
)
