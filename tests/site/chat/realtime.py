"""What this site decides: the examples of docs/hooks.md, at work."""

from __future__ import annotations

from django.contrib.auth.models import Group

import realtime
from realtime import hooks


@hooks.connect
def identify(request):
    """A device of ours sends the key that is printed on it."""
    if not isinstance(request.data, dict) or "key" not in request.data:
        return None
    if request.data["key"] != "0123":
        raise hooks.Disconnect(4001, "unknown device", reconnect=False)
    return hooks.Connected(
        user=f"device-{request.data['key']}",
        info={"name": "lamp"},
        channels=["device:all"],
        ttl=3600,
        data={"interval": 10},
    )


@hooks.refresh
def may_stay(request):
    if request.user.startswith("device-"):
        return hooks.Connected(ttl=3600)
    return None


@hooks.info
def about(user):
    return {"name": user.get_username()}


@hooks.subscribe("room:{room}")
def may_enter(request):
    user = request.django_user
    if not user.groups.filter(name=request.params["room"]).exists():
        return False
    return {"staff": user.is_staff}


@hooks.subscribe("room:*")
def may_enter_others(request):
    return request.channel.startswith("room:public:")


@hooks.subscribe("stock:*")
async def may_watch(request):
    user = await request.aget_user()
    if not user.is_authenticated:
        raise hooks.Error(1001, "stock is for customers")


@hooks.subscribe("board-{board}")
def may_read(request):
    if not request.django_user.groups.filter(name=request.params["board"]).exists():
        return False
    return hooks.Allowed(info={"role": "reader"}, ttl=60)


@hooks.publish("room:{room}")
def check(request):
    if not isinstance(request.data, dict) or not isinstance(request.data.get("text"), str):
        raise hooks.Error(1002, "an object with a text is wanted")
    text = request.data["text"].strip()
    if not text:
        return False
    return {"text": text, "room": request.params["room"]}


@hooks.rpc
async def add(request):
    if not isinstance(request.data, dict):
        raise hooks.Error(1003, "an object with a and b is wanted")
    return request.data["a"] + request.data["b"]


@hooks.rpc("room.members")
def members(request):
    group = Group.objects.filter(name=request.data).first()
    if group is None:
        raise hooks.Error(1004, "no such room")
    return sorted(user.get_username() for user in group.user_set.all())


@hooks.map_put("lobby:{pk}")
def take_seat(request):
    if request.removed:
        return request.key.startswith(f"{request.user}:")
    return hooks.Put(f"{request.user}:{request.key}", request.data)


@hooks.message
def seen(request):
    realtime.publish(f"seen#{request.user}", request.data)
