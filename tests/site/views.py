"""Views that call the Python API from every place a site may call it from.

The body of a request is {"function": name, "arguments": [...]}. The answer is {"result": ...}, see
`outcomes`, or {"error": class name, "code", "message"}.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

import realtime
from tests.site import outcomes


def hello(request: HttpRequest) -> HttpResponse:
    """A page that has nothing to do with the service."""
    return HttpResponse("hello")


class Call:
    """The call that a request asks for."""

    def __init__(self, request: HttpRequest) -> None:
        body = json.loads(request.body)
        self._name: str = body["function"]
        self._arguments: list[Any] = body["arguments"]

    def run(self) -> Any:
        """Call the function."""
        return getattr(realtime, self._name)(*self._arguments)

    async def arun(self) -> Any:
        """Await its twin."""
        return await getattr(realtime, f"a{self._name}")(*self._arguments)


def _answer(work: Callable[[], Any]) -> JsonResponse:
    try:
        return JsonResponse(outcomes.of(work()))
    except Exception as error:
        return _failure(error)


def _failure(error: Exception) -> JsonResponse:
    return JsonResponse(
        {
            "error": type(error).__name__,
            "code": error.code if isinstance(error, realtime.Error) else None,
            "message": error.message if isinstance(error, realtime.Error) else str(error),
        }
    )


@csrf_exempt
def sync_view(request: HttpRequest) -> JsonResponse:
    """Call the function in a synchronous view."""
    return _answer(Call(request).run)


@csrf_exempt
def thread(request: HttpRequest) -> JsonResponse:
    """Call the function in a thread that the view started."""
    with ThreadPoolExecutor(1) as threads:
        return _answer(threads.submit(Call(request).run).result)


@csrf_exempt
def sync_to_async_to_sync(request: HttpRequest) -> JsonResponse:
    """Call the function in a thread, from a coroutine, from a synchronous view."""
    return _answer(async_to_sync(sync_to_async(Call(request).run)))


@csrf_exempt
def async_from_sync(request: HttpRequest) -> JsonResponse:
    """Await the twin in `async_to_sync`, which runs it on the server's event loop."""
    return _answer(async_to_sync(Call(request).arun))


@csrf_exempt
def other_loop(request: HttpRequest) -> JsonResponse:
    """Await the twin in `async_to_sync` in a new thread: on an event loop of its own."""
    call = Call(request)
    with ThreadPoolExecutor(1) as threads:
        return _answer(threads.submit(lambda: async_to_sync(call.arun)()).result)


@csrf_exempt
def forked(request: HttpRequest) -> HttpResponse:
    """Call the function in a forked process."""
    call = Call(request)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, _answer(call.run).content)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return HttpResponse(answer, content_type="application/json")


@csrf_exempt
async def async_view(request: HttpRequest) -> JsonResponse:
    """Await the twin in an asynchronous view."""
    try:
        return JsonResponse(outcomes.of(await Call(request).arun()))
    except Exception as error:
        return _failure(error)


@csrf_exempt
async def task(request: HttpRequest) -> JsonResponse:
    """Await the twin in a task that the view started."""
    try:
        return JsonResponse(outcomes.of(await asyncio.create_task(Call(request).arun())))
    except Exception as error:
        return _failure(error)


@csrf_exempt
async def sync_on_the_loop(request: HttpRequest) -> JsonResponse:
    """Call the plain function on the server's event loop, which is a mistake."""
    return _answer(Call(request).run)


@csrf_exempt
def sync_on_another_loop(request: HttpRequest) -> JsonResponse:
    """Call the plain function on an event loop that is not the server's, also a mistake."""
    call = Call(request)

    async def run() -> Any:
        return call.run()

    with ThreadPoolExecutor(1) as threads:
        return _answer(threads.submit(lambda: asyncio.run(run())).result)
