"""Views of the test site that answer as strangers' clients ask; the model is a script.

The last message of the user names the script. A script waits in its middle until a test posts to
`go/<chat>`, so tests look at answers that are under way.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from realtime import hooks
from realtime.answers import Producer, answer, begin, end, response, resume_response
from realtime.answers.models import Answer
from realtime.answers.rows import running

TIMEOUT = 60.0

gates: defaultdict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(0))
"""ID of a chat → as many as its script may pass."""

Chunk = dict[str, Any]
WAIT: Chunk = {}
"""Where a script waits."""
FAIL: Chunk = {"fails": True}

TOOL = "weather"
EXTRA: dict[str, Chunk] = {
    "ui": {"type": "data-mood", "data": "glad"},
    "ag-ui": {"type": "CUSTOM", "name": "mood", "value": "glad"},
}


def _ui_tools() -> Iterator[Chunk]:
    yield {"type": "start"}
    yield {"type": "start-step"}
    yield {"type": "reasoning-start", "id": "r"}
    for delta in ("They ask ", "for the weather."):
        yield {"type": "reasoning-delta", "id": "r", "delta": delta}
    yield {"type": "reasoning-end", "id": "r"}
    yield {"type": "tool-input-start", "toolCallId": "c", "toolName": TOOL}
    yield {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"city": '}
    yield WAIT
    yield {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '"Rome"}'}
    found = {"toolCallId": "c", "toolName": TOOL, "input": {"city": "Rome"}}
    yield {"type": "tool-input-available"} | found
    yield {"type": "tool-output-available", "toolCallId": "c", "output": {"sky": "blue"}}
    yield {"type": "finish-step"}
    yield {"type": "finish", "finishReason": "tool-calls"}


def _ag_ui_tools() -> Iterator[Chunk]:
    yield {"type": "RUN_STARTED", "threadId": "own", "runId": "mine"}
    yield {"type": "REASONING_START", "messageId": "r"}
    yield {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"}
    for delta in ("They ask ", "for the weather."):
        yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": delta}
    yield {"type": "REASONING_MESSAGE_END", "messageId": "r"}
    yield {"type": "REASONING_END", "messageId": "r"}
    yield {"type": "STEP_STARTED", "stepName": "look"}
    yield {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": TOOL}
    yield {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"city": '}
    yield WAIT
    yield {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '"Rome"}'}
    yield {"type": "TOOL_CALL_END", "toolCallId": "c"}
    result = {"messageId": "m", "toolCallId": "c", "content": "blue"}
    yield {"type": "TOOL_CALL_RESULT"} | result
    yield {"type": "STEP_FINISHED", "stepName": "look"}


SCRIPTS: dict[tuple[str, str], Callable[[], Iterator[str | Chunk]]] = {
    ("ui", "tools"): _ui_tools,
    ("ag-ui", "tools"): _ag_ui_tools,
    **{
        (form, name): lambda words=words: iter(words)  # type: ignore[misc]
        for form in ("ui", "ag-ui")
        for name, words in {
            "text": ("Hello", " ", WAIT, "wor", "ld."),
            "fails": ("Half ", WAIT, FAIL),
            "steps": (WAIT, "one ", WAIT, "two ", WAIT, "three"),
            "twice": (WAIT, "One.", EXTRA[form], "Two."),
        }.items()
    },
}


def play(row: Answer, chat: str, script: str) -> None:
    """Write the answer of a script."""
    try:
        with answer(id=row.pk) as a:
            for step in SCRIPTS[row.form, script]():
                _take(a, chat, step)
    except RuntimeError:
        pass  # the script's own failure
    finally:
        connection.close()


def _take(a: Producer, chat: str, step: str | Chunk) -> None:
    if step is WAIT:
        assert gates[chat].acquire(timeout=TIMEOUT)
    elif step is FAIL:
        raise RuntimeError("a secret of the site")
    elif isinstance(step, str):
        a.write(step)
    else:
        a.send(step)


@csrf_exempt
def ask(request: HttpRequest, form: str) -> HttpResponse:
    """Begin the answer that a client of the AI SDK, or of AG-UI, asks for."""
    asked = json.loads(request.body)
    chat, message = asked.get("id") or asked["threadId"], asked["messages"][-1]
    script = message["parts"][0]["text"] if form == "ui" else message["content"]
    row = begin(f"script:{chat}", form=form)
    threading.Thread(target=play, args=(row, chat, script)).start()
    reply = response(request, row)
    reply["answer-id"] = str(row.pk)
    return reply


def resume(request: HttpRequest, form: str, chat: str) -> HttpResponse:
    """Respond with the answer that is under way."""
    return resume_response(request, f"script:{chat}")


@csrf_exempt
def go(request: HttpRequest, chat: str) -> HttpResponse:
    """Let the script of a chat go on."""
    gates[chat].release()
    return HttpResponse()


@csrf_exempt
def stop(request: HttpRequest, chat: str) -> HttpResponse:
    """Stop the answer that is under way in a chat."""
    row = running(f"script:{chat}")
    assert row is not None
    end(row, "stopped")
    return HttpResponse()


@hooks.answer_stop("script:{chat}")
def may_stop(request: Any) -> bool:
    return True


urlpatterns = [
    path("scripts/<form>", ask),
    path("scripts/<form>/<chat>/stream", resume),
    path("go/<chat>", go),
    path("stop/<chat>", stop),
]
