"""Pages whose state changes between their query and their response, and all the time besides.

The state of a channel is a number. A writer changes it and publishes the new one, as after a
commit: a query sees no number that is not published soon, and none is published before it is there.
"""

from __future__ import annotations

import contextlib
import threading
import time

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import Context, Template

import realtime
from realtime.errors import EngineUnavailable
from realtime.transports.asgi import BEGUN

PAGE = Template("{% load realtime %}{% if tag %}{% realtime_channel channel %}{% endif %}")

_lock = threading.Lock()
_states: dict[str, int] = {}
_published: dict[tuple[str, int], float] = {}
"""Channel and number → when publishing had ended."""
_writers: dict[str, threading.Event] = {}


def write(channel: str) -> int:
    """Change the state and publish it."""
    with _lock:
        number = _states[channel] = _states.get(channel, 0) + 1
        realtime.publish(channel, number)
        _published[channel, number] = time.time()
    return number


def writer(request: HttpRequest) -> HttpResponse:
    """Begin to write so often per second, or end that with a rate of 0."""
    channel, rate = request.GET["channel"], float(request.GET["rate"])
    if (running := _writers.pop(channel, None)) is not None:
        running.set()
    if rate:
        ended = _writers[channel] = threading.Event()

        def run() -> None:
            while not ended.wait(1 / rate):
                with contextlib.suppress(EngineUnavailable):
                    write(channel)

        threading.Thread(target=run, daemon=True).start()
    return HttpResponse()


def race(request: HttpRequest) -> JsonResponse:
    """A page with a number. Unless "quiet", it is an old one before the response is sent."""
    channel = request.GET["channel"]
    queried = _states.get(channel, 0)
    last = queried if "quiet" in request.GET else write(channel)
    values = {"request": request, "channel": channel, "tag": "tag" in request.GET}
    html = PAGE.render(Context(values))
    return JsonResponse(
        {"html": html, "queried": queried, "last": last, "begun": request.scope[BEGUN]}  # type: ignore[attr-defined]
    )


def tag(request: HttpRequest) -> HttpResponse:
    """A page with a tag and nothing else."""
    values = {"request": request, "channel": request.GET["channel"], "tag": True}
    return HttpResponse(PAGE.render(Context(values)))


def published(request: HttpRequest) -> JsonResponse:
    """When publishing a number had ended; without one, all numbers that were published."""
    if "number" not in request.GET:
        channel = request.GET["channel"]
        return JsonResponse({"numbers": [number for name, number in _published if name == channel]})
    return JsonResponse({"at": _published[request.GET["channel"], int(request.GET["number"])]})
