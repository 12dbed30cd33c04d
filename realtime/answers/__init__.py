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
    from realtime.answers.http import response as response
    from realtime.answers.http import resume_response as resume_response
    from realtime.answers.permission import StopRequest as StopRequest
    from realtime.answers.producer import AnswerFailed as AnswerFailed
    from realtime.answers.producer import Producer as Producer
    from realtime.answers.producer import Stopped as Stopped
    from realtime.answers.rows import Busy as Busy
    from realtime.answers.rows import begin as begin
    from realtime.answers.rows import end as end
    from realtime.answers.rows import erase as erase
    from realtime.answers.writing import aanswer as aanswer
    from realtime.answers.writing import answer as answer

_MODULES = {
    **dict.fromkeys(("Busy", "begin", "end", "erase"), "realtime.answers.rows"),
    **dict.fromkeys(("AnswerFailed", "Producer", "Stopped"), "realtime.answers.producer"),
    **dict.fromkeys(("aanswer", "answer"), "realtime.answers.writing"),
    **dict.fromkeys(("response", "resume_response"), "realtime.answers.http"),
    "StopRequest": "realtime.answers.permission",
}

__all__ = list(_MODULES)

__getattr__ = lazy_names(__name__, _MODULES)
