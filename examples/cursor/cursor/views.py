import random

from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from .realtime import NAMES


@require_safe
@never_cache
def board(request, name="main"):
    """Show a board to a visitor, who gets a name for this page."""
    context = {"channel": f"board:{name}", "name": random.choice(NAMES)}
    return render(request, "cursor/board.html", context)
