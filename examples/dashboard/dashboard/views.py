from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from realtime.pages import set_positions

from . import shop


@require_safe
def page(request):
    """Show the numbers as they are; the page goes on from there."""
    return render(request, "dashboard/page.html", {"channel": shop.CHANNEL, "state": shop.state()})


@require_safe
@never_cache
def state(request):
    """Return the numbers to a page that was away for longer than the channel remembers."""
    response = JsonResponse(shop.state())
    set_positions(response, request, [shop.CHANNEL])
    return response


@require_POST
def sell(request):
    """Let the shop sell for a minute."""
    shop.sell_in_background(seconds=60)
    return HttpResponse(status=204)
