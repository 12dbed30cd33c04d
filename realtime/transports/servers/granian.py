"""What granian needs beyond ASGI: to close clients as soon as it stops.

granian waits for all responses before it ends the lifespan, and the responses of SockJS wait for
their clients. It sets its signal handlers on the event loop; a Python handler does not replace
them, so both run.
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


def close_clients_on_stop(receive: Receive) -> None:
    """Make granian close the clients when it begins to stop. No effect under other servers.

    Args:
        receive: the `receive` of the lifespan.
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
