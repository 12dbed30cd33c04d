"""Views of the test site that begin answers, of a model that is a script."""

from __future__ import annotations

import threading
import time
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from realtime.answers import answer, begin, response, resume_response
from realtime.answers.models import Answer

WORDS = ("one", "two", "<three>", "four\nfive")


def write(row: Answer, count: int, pause: float) -> None:
    """Write words, one after another."""
    try:
        with answer(id=row.pk) as a:
            for number in range(count):
                a.write(f"{WORDS[number % len(WORDS)]} {number} ")
                time.sleep(pause)
    finally:
        connection.close()


@csrf_exempt
def ask(request: HttpRequest, pk: str, namespace: str = "chat") -> HttpResponse:
    """Begin an answer of `count` words; respond with it, or with its ID."""
    user = request.GET.get("user", "") or request.user
    given: dict[str, Any] = {"user": user, "form": request.GET.get("form", "ui")}
    row = begin(f"{namespace}:{pk}", if_busy="stop", **given)
    count, pause = int(request.GET["count"]), float(request.GET.get("pause", "0.01"))
    threading.Thread(target=write, args=(row, count, pause)).start()
    return JsonResponse({"id": str(row.pk)}) if "id" in request.GET else response(request, row)


def stream(request: HttpRequest, pk: str, namespace: str = "chat") -> HttpResponse:
    """Respond with the answer that is under way in a chat."""
    return resume_response(request, f"{namespace}:{pk}")


urlpatterns = [
    path("chat/<pk>", ask),
    path("chat/<pk>/stream", stream),
    path("closed/<pk>", ask, {"namespace": "closed"}),
    path("closed/<pk>/stream", stream, {"namespace": "closed"}),
    path("answers/", include("realtime.answers.urls")),
]
