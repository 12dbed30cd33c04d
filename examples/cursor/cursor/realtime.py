"""Who comes to the board, and what may be published there."""

from realtime import hooks

NAMES = ("Fox", "Owl", "Hare", "Lynx", "Otter", "Heron", "Badger", "Wren", "Newt", "Stoat")


@hooks.connect
async def enter(request):
    """Admit everyone, under one of our names; the data come from the page, so check them."""
    name = request.data.get("name") if isinstance(request.data, dict) else None
    return hooks.Connected(info={"name": name if name in NAMES else "Visitor"})


@hooks.publish("board:*")
async def move(request):
    """Let clients publish a place on the board, and nothing else."""
    data = request.data if isinstance(request.data, dict) else {}
    place = {axis: data.get(axis) for axis in ("x", "y")}
    if not all(is_share(value) for value in place.values()):
        raise hooks.Error(1000, "a place has x and y, from 0 to 1")
    return place | {"click": data.get("click") is True}


def is_share(value):
    """Tell whether this is a number from 0 to 1."""
    return type(value) in (int, float) and 0 <= value <= 1
