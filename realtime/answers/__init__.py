"""Answers of language models: streams that resume, stop, and end exactly once.

    run = begin("chat:42", user=request.user)       # in a view: a row
    generate.enqueue(str(run.id))                   # in a worker:
    with answer(id=run_id) as a:
        for token in model(prompt):
            a.write(token)

docs/answers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime import lazy_names

if TYPE_CHECKING:
    from realtime.answers.http import response, resume_response
    from realtime.answers.permission import StopRequest
    from realtime.answers.producer import AnswerFailed, Producer, Stopped
    from realtime.answers.rows import Busy, begin, end, erase
    from realtime.answers.writing import aanswer, answer

__all__ = [
    "AnswerFailed",
    "Busy",
    "Producer",
    "StopRequest",
    "Stopped",
    "aanswer",
    "answer",
    "begin",
    "end",
    "erase",
    "response",
    "resume_response",
]

_MODULES = {
    **dict.fromkeys(("Busy", "begin", "end", "erase"), "realtime.answers.rows"),
    **dict.fromkeys(("AnswerFailed", "Producer", "Stopped"), "realtime.answers.producer"),
    **dict.fromkeys(("aanswer", "answer"), "realtime.answers.writing"),
    **dict.fromkeys(("response", "resume_response"), "realtime.answers.http"),
    "StopRequest": "realtime.answers.permission",
}

__getattr__ = lazy_names(__name__, _MODULES)
