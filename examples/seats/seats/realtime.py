"""Who comes, who sits where, and which cursors there are."""

import re

import realtime
from realtime import hooks

NAMES = ("Fox", "Owl", "Hare", "Lynx", "Otter", "Heron", "Badger", "Wren", "Newt", "Stoat")
SEATS = [f"{row}{number}" for row in "ABC" for number in range(1, 7)]
ROOM = re.compile(r"[-\w]{1,40}", re.ASCII)


@hooks.connect
async def enter(request):
    """Admit everyone."""
    return hooks.Connected()


@hooks.map_put("cursors:*")
async def move(request):
    """Let clients put a place and one of our names, and nothing else."""
    if request.removed:
        return True
    data = request.data if isinstance(request.data, dict) else {}
    place = {axis: data.get(axis) for axis in ("x", "y")}
    if not all(is_share(value) for value in place.values()):
        raise hooks.Error(1000, "a place has x and y, from 0 to 1")
    return hooks.Put(request.key, place | {"name": name_in(data)})


@hooks.rpc
def sit(request):
    """Take a seat for half a minute, if it is free or one's own; return whether it is one's own."""
    seats, seat = asked(request)
    sitting = {"name": name_in(request.data), "client": request.client}
    change = seats.put(seat, sitting, if_new=True)
    current = change.current
    if current and current.data["client"] == request.client:
        change = seats.put(seat, sitting, expect=current.position)  # half a minute more
    return change.kept


@hooks.rpc
def stand(request):
    """Leave a seat, if it is one's own."""
    seats, seat = asked(request)
    current = seats.get(seat)
    if current and current.data["client"] == request.client:
        seats.remove(seat, expect=current.position)


def asked(request):
    """Return the map of seats and the seat that a client names."""
    data = request.data if isinstance(request.data, dict) else {}
    room, seat = data.get("room"), data.get("seat")
    if not (isinstance(room, str) and ROOM.fullmatch(room) and seat in SEATS):
        raise hooks.Error(1001, "no such seat")
    return realtime.map(f"seats:{room}"), seat


def name_in(data):
    """Return the name that a page sent, if it is one of ours."""
    return data["name"] if data.get("name") in NAMES else "Visitor"


def is_share(value):
    """Tell whether this is a number from 0 to 1."""
    return type(value) in (int, float) and 0 <= value <= 1
