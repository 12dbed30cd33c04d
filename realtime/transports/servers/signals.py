"""Close clients when a signal ends the server, at an even rate; and at once at a second signal.

uvicorn begins to end its connections up to a tenth of a second later. gunicorn's own worker, and
hypercorn in one process, wait for all connections before they end the lifespan, and clients stay
connected until then. All of them take a second SIGTERM for the first one. They set their signal
handlers before the lifespan starts, on the event loop or by `signal`: a handler here runs besides.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType

from realtime.serving import serving

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NO_HANDLER = (None, signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler)


def close_clients_on_signal() -> None:
    """Begin to close the clients when the server gets a signal to stop.

    No effect under servers that set no signal handler.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        run_on_signal(number, loop)


def run_on_signal(number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
    """Tell the service of a signal besides the handler that is set; without one, do nothing."""
    handler = signal.getsignal(number)
    if handler in _NO_HANDLER:
        return

    def handle(signum: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(serving.on_signal)
        if callable(handler):
            handler(signum, frame)

    signal.signal(number, handle)
    signal.siginterrupt(number, False)  # as the loop has it
