"""What granian needs on top of ASGI: a word when it begins to stop.

It waits for the responses to requests before the lifespan ends, and those of SockJS wait for their
clients. Its own handlers of signals are the event loop's; one of Python's may stand beside them.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType

from realtime.serving import serving
from realtime.transports.asgi import Receive

_LIFESPAN = ("granian.asgi", "LifespanProtocol")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def stops_first(receive: Receive) -> None:
    """Tell the clients when granian begins to stop. `receive`: that of the lifespan.

    Nothing happens under another server.
    """
    kind = type(getattr(receive, "__self__", None))
    if (kind.__module__, kind.__qualname__) != _LIFESPAN:
        return
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(serving.begin_stop)

    for number in _SIGNALS:
        signal.signal(number, stop)
        signal.siginterrupt(number, False)  # as the loop has it
