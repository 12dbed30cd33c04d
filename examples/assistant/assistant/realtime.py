"""What the service asks of the site. It loads this module by itself."""

from realtime import hooks

from .models import Message


@hooks.subscribe("talk:{pk}")
def may_read(request):
    return request.user == request.params["pk"]  # the page has a token for its conversation


@hooks.publish("talk:{pk}")
def may_steer(request):
    text = request.data.get("text") if isinstance(request.data, dict) else None
    if not isinstance(text, str) or not text.strip():
        return False
    text = text.replace("\x00", "")[:500]
    Message.objects.create(talk_id=request.params["pk"], is_answer=False, text=text)
    return {"text": text}


@hooks.answer_end("talk:{pk}")
def save(row):
    Message.objects.create(
        talk_id=row.params["pk"], is_answer=True, text=row.text, status=row.status
    )
