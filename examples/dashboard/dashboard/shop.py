"""The process behind the numbers: a shop that sells something every second."""

import random
import time
from threading import Lock, Thread

from django.db import connection, transaction
from django.db.models import Sum

from realtime import publish

from .models import Second

CHANNEL = "shop:sales"
SHOWN = 60
_selling = Lock()


def totals():
    """Return the sums over everything that was sold."""
    return Second.objects.aggregate(
        orders=Sum("orders", default=0), revenue=Sum("revenue", default=0)
    )


def state():
    """Return all that the page shows."""
    newest = Second.objects.order_by("-id")[:SHOWN]
    return {"totals": totals(), "seconds": [second.as_json() for second in reversed(newest)]}


def sell_once():
    """Sell something, and tell the pages: the new second, and sums that are right by themselves."""
    with transaction.atomic():
        orders = random.randint(1, 9)
        second = Second.objects.create(orders=orders, revenue=orders * random.randint(8, 60))
        publish(CHANNEL, {"second": second.as_json(), "totals": totals()})


def sell(seconds, pause=1):
    """Sell for a while; `pause` is in seconds."""
    for _ in range(seconds):
        sell_once()
        time.sleep(pause)


def sell_in_background(seconds):
    """Sell in a thread of this process, unless one does already."""

    def run():
        try:
            sell(seconds)
        finally:
            connection.close()
            _selling.release()

    if _selling.acquire(blocking=False):
        Thread(target=run, daemon=True).start()
