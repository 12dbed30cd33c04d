"""Close clients when a signal ends the server, for servers that end the lifespan last.

gunicorn's own worker, and hypercorn in one process, wait for all connections before they end the
lifespan, and clients stay connected until then. They set their signal handlers on the event loop; a
Python handler does not replace them, so both run.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType

from realtime.serving import serving
from realtime.transports.asgi import Receive
from realtime.transports.servers import granian

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NO_HANDLER = (None, signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler)
_HAVE_THEIR_OWN = "uvicorn."


def close_clients_on_signal(receive: Receive) -> None:
    """Begin to close the clients when the server gets a signal to stop.

    No effect under servers that set no signal handler, or for which the service has another way.

    Args:
        receive: the `receive` of the lifespan.
    """
    if type(getattr(receive, "__self__", None)).__module__.startswith(_HAVE_THEIR_OWN):
        return
    if granian.is_loaded() or threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        _begin_stop_at(number, loop)


def _begin_stop_at(number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
    handler = signal.getsignal(number)
    if handler in _NO_HANDLER:
        return

    def handle(signum: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(serving.begin_stop)
        if callable(handler):
            handler(signum, frame)

    signal.signal(number, handle)
    signal.siginterrupt(number, False)  # as the loop has it
