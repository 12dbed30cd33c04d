from django.contrib.auth import get_user_model, login
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from realtime import publish

from .models import Message
from .realtime import ROOMS

PEOPLE = ("Ada", "Ben", "Chen")
SHOWN = 100


@login_required
def room(request, name):
    """Show a room, or say something there."""
    if name not in ROOMS:
        raise Http404(name)
    channel = f"chat:{name}"
    text = request.POST.get("text", "").replace("\x00", "").strip()[:500]
    if request.method == "POST" and text:
        with transaction.atomic():
            message = Message.objects.create(room=name, author=request.user, text=text)
            publish(channel, message.as_json())  # goes out after the commit
        return HttpResponse(status=204)
    newest = Message.objects.filter(room=name).select_related("author").order_by("-id")[:SHOWN]
    context = {"channel": channel, "name": name, "rooms": ROOMS, "messages": reversed(newest)}
    return render(request, "chat/room.html", context)


def enter(request):
    """Log in as one of some people without a password. Your site has a login of its own."""
    if request.method == "POST" and (name := request.POST.get("name")) in PEOPLE:
        user, _ = get_user_model().objects.get_or_create(username=name)
        login(request, user)
        return redirect("room", ROOMS[0])
    return render(request, "chat/enter.html", {"people": PEOPLE})
