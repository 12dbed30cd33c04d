"""The test site, and at /left and /kept accounts of what is in the memory of its process."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections import Counter

from realtime.transports.asgi import Receive, Scope, Send
from tests.site.asgi import application as site

COUNTED = {
    "realtime.transports.emulation.session.EmulatedSession",
    "realtime.transports.emulation.response.SessionResponse",
    "realtime.transports.sockjs.websocket.SockJSTransport",
    "realtime.transports.asgi.Exchange",
    "realtime.clients.client.Client",
}

CONNECTIONS = {
    "AdvisingProtocol",
    "GuardedRequest",
    "H11Protocol",
    "ServerProtocol",
    "TimedChannel",
    "TimedH11Protocol",
    "WebSocketsSansIOProtocol",
}
"""Classes of connections and requests of daphne, uvicorn and websockets."""


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """The site's, but for one path."""
    accounts = {"/left": _left, "/kept": _kept}
    account = accounts.get(scope["path"]) if scope["type"] == "http" else None
    if account is None:
        await site(scope, receive, send)
        return
    body = json.dumps(account()).encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _left() -> dict[str, int]:
    """Kind of object → how many there are.

    "ours": all objects of this package's classes; "blocks": all pieces of memory in use.
    """
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    names = Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    counts = {name.rpartition(".")[2]: names[name] for name in COUNTED}
    ours = sum(number for name, number in names.items() if name.startswith("realtime."))
    return {
        **counts,
        "ours": ours,
        "tasks": len(asyncio.all_tasks()),
        "blocks": sys.getallocatedblocks(),
    }


def _kept() -> dict[str, int]:
    """Class of connections → how many there are; and end garbage collections.

    So what is kept by nothing but reference cycles stays, and counts.
    """
    gc.disable()
    names = Counter(type(each).__name__ for each in gc.get_objects())
    return {name: names[name] for name in CONNECTIONS if names[name]}
