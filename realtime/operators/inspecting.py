"""Inspecting: what a token says, and whether it is valid, for a person who looks into a problem."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Raw

from realtime import payload
from realtime.auth.claims import ConnectToken, ExpiredToken, InvalidToken
from realtime.auth.keys import KeysUnavailable
from realtime.auth.verifier import Verifier, claims_of
from realtime.payload import Payload


class Inspected(NamedTuple):
    """A token that was taken apart."""

    is_subscription: bool
    """Whether it is a subscription token: it names a channel."""
    claims: Payload | None = None
    """What it says, verified or not; None if it cannot be read."""
    is_valid: bool | None = False
    """Whether signature, times, audience and issuer are right; None if no key can be fetched."""
    why: str = ""
    """Why it is not valid, in English, without the token."""
    expires_at: float | None = None
    """The claim `exp`, Unix seconds, verified or not; None if there is none."""


async def inspect(verifier: Verifier, token: str, now: float) -> Inspected:
    """Take a connection or a subscription token apart, and verify it.

    Args:
        verifier: of the configuration in force.
        token: in compact form.
        now: Unix seconds.
    """
    try:
        claims = payload.check(claims_of(token))
        fields = msgspec.json.decode(claims.json, type=dict[str, Raw])
    except (InvalidToken, ValueError, RecursionError) as error:
        return Inspected(is_subscription=False, why=_reason(error))
    is_subscription = bytes(fields.get("channel", b"null")) != b"null"
    is_valid: bool | None = True
    why = ""
    try:
        if is_subscription:
            await verifier.subscribe(token, now)
        elif not isinstance(await verifier.identify(token, now), ConnectToken):
            why, is_valid = "an observer's token, which the panel makes for itself", False
    except (InvalidToken, ExpiredToken) as error:
        why, is_valid = str(error), False
    except KeysUnavailable as error:
        why, is_valid = str(error), None
    return Inspected(is_subscription, claims, is_valid, why, _seconds(fields.get("exp")))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, InvalidToken) else "its claims are not a JSON object"


def _seconds(claim: Raw | None) -> float | None:
    try:
        return None if claim is None else float(msgspec.json.decode(claim, type=float))
    except msgspec.MsgspecError:
        return None
