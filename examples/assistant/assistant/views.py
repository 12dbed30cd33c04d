"""A page for each conversation, and the view that asks the model."""

import threading

from django.db import close_old_connections, transaction
from django.http import JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from realtime import publish
from realtime.answers import Busy, answer, begin
from realtime.tokens import connection_token

from .model import think
from .models import Message, Talk


def begin_talk(request):
    return redirect("talk", Talk.objects.create().pk)


def talk(request, pk):
    talk = get_object_or_404(Talk, pk=pk)
    token = connection_token(str(pk), ttl=24 * 3600)  # who has the address is its user
    context = {"talk": talk, "messages": talk.messages.all(), "token": token}
    return render(request, "assistant/talk.html", context)


@require_POST
def ask(request, pk):
    talk, channel = get_object_or_404(Talk, pk=pk), f"talk:{pk}"
    text = request.POST.get("text", "").replace("\x00", "").strip()[:500]
    if not text:
        return JsonResponse({}, status=400)
    try:
        with transaction.atomic():
            row = begin(channel, user=str(pk))
            Message.objects.create(talk=talk, is_answer=False, text=text)
            publish(channel, {"text": text})  # for other tabs
    except Busy:
        return JsonResponse({}, status=409)
    threading.Thread(target=work, args=(row.pk, text)).start()  # a task, where there is a queue
    return JsonResponse({"id": str(row.pk)})


def work(answer_id, prompt):
    try:
        with answer(id=answer_id) as a:
            think(prompt, a)
    finally:
        close_old_connections()
