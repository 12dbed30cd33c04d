"""Who may subscribe to the private channels of this site."""

from __future__ import annotations

from django.contrib.auth.models import User

from realtime import hooks


@hooks.subscribe("$lounge:{room}", "$open:{room}", "$closed:{room}")
def may_enter(request):
    """Members, for whom there is a group of the room's name; anybody into a room `free-...`."""
    user = request.get_user()
    room = request.params["room"]
    if not room.startswith("free-") and not user.groups.filter(name=room).exists():
        return False
    return {"name": user.get_username()}


@hooks.subscribe("$later-{room}")
async def may_enter_later(request):
    return await User.objects.filter(pk=request.user, groups__name=request.params["room"]).aexists()


@hooks.subscribe("*")
def may_read(request):
    """For public channels; it must not open private ones."""


@hooks.subscribe("$odd:{answer}")
def answer_oddly(request):
    match request.params["answer"].partition("-")[0]:
        case "error":
            raise hooks.Error(1001, "not today")
        case "disconnect":
            raise hooks.Disconnect(4001, "go away", reconnect=False)
        case "failure":
            raise LookupError("the function is broken")
        case "object":
            return object()
        case "none":
            return None
        case "false":
            return hooks.Data(False)
        case "request":
            return [
                request.client,
                request.user,
                request.token,
                request.handshake.transport,
                request.headers.get("user-agent"),
                "sessionid" in request.cookies,
            ]
