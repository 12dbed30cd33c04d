import random

from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from .realtime import NAMES, SEATS


@require_safe
@never_cache
def room(request, name="main"):
    """Show a room to a visitor, who gets a name for this page."""
    context = {"room": name, "name": random.choice(NAMES), "seats": SEATS}
    return render(request, "seats/room.html", context)
