"""What the service asks of the site. It loads this module by itself."""

from realtime import hooks

from .models import Message, Talk


@hooks.subscribe("talk:{pk}")
def may_read(request):
    return Talk.objects.filter(pk=request.params["pk"]).exists()


@hooks.publish("talk:{pk}")
def may_steer(request):
    text = request.data.get("text") if isinstance(request.data, dict) else None
    if not isinstance(text, str) or not text.strip():
        return False
    text = text.replace("\x00", "")[:500]
    Message.objects.create(talk_id=request.params["pk"], is_answer=False, text=text)
    return {"text": text}


@hooks.answer_stop("talk:{pk}")
def may_stop(request):
    return True  # who knows the address


@hooks.answer_end("talk:{pk}")
def save(row):
    Message.objects.create(
        talk_id=row.params["pk"], is_answer=True, text=row.text, status=row.status
    )
