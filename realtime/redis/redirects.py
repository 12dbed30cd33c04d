"""Redirects: what a server of a cluster answers to a command for another one.

    MOVED 3999 10.0.0.2:6379    the slot belongs to that server now
    ASK 3999 10.0.0.2:6379      the slot is moving there, and the key has moved already
    TRYAGAIN ...                the slot is moving, and of several keys some have moved

The command was not run, so it may be sent again.
"""

from __future__ import annotations

from typing import Literal

from realtime.errors import EngineUnavailable
from realtime.redis.hosts import Host, Place, place_of

CODES = ("MOVED ", "ASK ", "TRYAGAIN")


class Redirected(EngineUnavailable):
    """A server of a cluster did not run a command, and another one may."""

    code: Literal["MOVED", "ASK", "TRYAGAIN"]
    place: Place | None = None
    """The other server; None with TRYAGAIN."""

    @classmethod
    def of(cls, host: Host, text: str) -> Redirected | None:
        """Return the exception for an error of Redis; None if it is no redirect.

        Args:
            host: the server that answered.
            text: the error, which begins with its code.
        """
        if not text.startswith(CODES):
            return None
        redirected = cls(str(host.unavailable(text)))
        code, _, rest = text.partition(" ")
        redirected.code = "TRYAGAIN"
        if code in ("MOVED", "ASK"):
            name, _, port = rest.rpartition(" ")[2].rpartition(":")
            redirected.place = place_of(name, port, host)
            if redirected.place is None:
                return None
            redirected.code = "MOVED" if code == "MOVED" else "ASK"
        return redirected
