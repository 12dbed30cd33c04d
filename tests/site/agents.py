"""Views of the test site whose answers come from pydantic-ai's adapters; the model is a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from realtime.answers import aanswer, begin, response
from realtime.answers.models import Answer

_runs: dict[str, Callable[[], bool]] = {}
"""Chat → whether the last run of its agent is over."""


async def model(messages: list[Any], info: Any) -> AsyncIterator[Any]:
    """Answer as the prompt says."""
    from pydantic_ai.models.function import DeltaToolCall

    match messages[-1].parts[-1].content:
        case "text":
            yield "Hello "
            yield "world."
        case "tools":
            yield {0: DeltaToolCall(name="weather", json_args='{"city": "Rome"}', tool_call_id="c")}
        case "fails":
            yield "Half "
            raise RuntimeError("no tokens left")
        case "waits":
            yield "Hello "
            await asyncio.Event().wait()
        case result:
            yield f"The sky is {result}."


def adapter_of(form: str, body: bytes) -> Any:
    """Return pydantic-ai's adapter for a request."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from pydantic_ai.ui.vercel_ai import VercelAIAdapter

    def weather(city: str) -> str:
        return "blue"

    agent = Agent(FunctionModel(stream_function=model), tools=[weather])
    if form == "ui":
        run_input = VercelAIAdapter.build_run_input(body)
        return VercelAIAdapter(agent, run_input, sdk_version=6)
    return AGUIAdapter(agent, AGUIAdapter.build_run_input(body))


async def produce(answer_id: Any, form: str, body: bytes) -> None:
    """Write the answer of an agent."""
    adapter = adapter_of(form, body)
    async with aanswer(id=answer_id) as a:
        async for chunk in adapter.run_stream(cancellation_token=a.token):
            a.send(chunk)


def work(answer_id: Any, form: str, body: bytes) -> None:
    """Write the answer of an agent, outside of the loop of the server."""
    try:
        asyncio.run(produce(answer_id, form, body))
    finally:
        connections.close_all()


@csrf_exempt
async def ask(request: HttpRequest, where: str, form: str) -> HttpResponse:
    """Begin an answer on the loop of the server, in a thread, or in a worker of Celery."""
    asked = json.loads(request.body)
    chat = asked.get("id") or asked["threadId"]
    row = await sync_to_async(begin)(f"script:{chat}", form=form)
    given = (row.pk, form, request.body)
    if where == "loop":
        task = asyncio.create_task(produce(*given))
        _runs[chat] = task.done
    elif where == "thread":
        thread = threading.Thread(target=work, args=given)
        thread.start()
        _runs[chat] = lambda: not thread.is_alive()
    else:
        from tests.site import tasks

        result = tasks.work.delay(str(row.pk), form, request.body.decode())
        _runs[chat] = result.ready
    return response(request, row)


def show(request: HttpRequest, chat: str) -> HttpResponse:
    """Say what the row has of the last answer in a chat, and whether its agent still runs."""
    row = Answer.objects.filter(channel=f"script:{chat}").latest("created")
    shown = {"status": row.status, "text": row.text, "error": row.error, "over": _runs[chat]()}
    return JsonResponse(shown)


urlpatterns = [path("agents/<where>/<form>", ask), path("agents/<chat>", show)]
