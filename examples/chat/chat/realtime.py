"""Who may enter a room, and what others see of a person there."""

from realtime import hooks

ROOMS = ("lobby", "kitchen", "garden")


@hooks.info
def about(user):
    """Return what others see of a person: in presence, joins, and with "is writing"."""
    return {"name": user.get_username()}


@hooks.subscribe("chat:*", "typing:*")
async def may_enter(request):
    """Admit everyone who is logged in to the rooms that exist."""
    return request.channel.partition(":")[2] in ROOMS


@hooks.publish("typing:*")
async def writes(request):
    """Replace what a client sends: others learn who writes, and nothing else."""
    return {}
