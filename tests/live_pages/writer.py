"""Changes the list of a copy of the to-do example, as a worker beside its servers.

    python writer.py <changes> <per second> <seed> <fill | alone | rows | beside>

It runs in the directory of the copy. Each change is a transaction: of a row, and of what the views
of the example publish; a feed of the copy publishes by itself. The title of a row begins with its
version, which grows with each change. With "fill", rows are added, and nothing is published. With
"beside", no row is added, so that another writer, with "rows", may do that at the same time: new
rows stand in the order in which they come. Each change adds a byte to the file "changes".
"""

import os
import random
import sys
import time
from functools import partial

import django
from django.db import transaction

sys.path.insert(0, os.getcwd())
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()

import traps  # type: ignore[import-not-found]  # noqa: E402
from todo.models import Item  # type: ignore[import-not-found]  # noqa: E402

from realtime.live import publish_html  # noqa: E402

CHANNEL = "todo:all"
SHARES = {"alone": (0.15, 0.15), "rows": (0.25, 0.1), "beside": (0.0, 0.15)}
"""Mode → the shares of rows that are added, and removed; a list keeps its length."""


@transaction.atomic
def change(chance: random.Random, keys: list[int], mode: str) -> None:
    """Add an item, remove one, or change one."""
    transaction.on_commit(partial(traps.come_to, "commit"))  # before what publishes
    added, removed = SHARES[mode]
    kind = chance.random()
    if kind < added:
        item = Item.objects.create(title=f"v1 <new> {chance.random()}")
        keys.append(item.pk)
    elif kind < added + removed and keys:
        pk = keys.pop(chance.randrange(len(keys)))
        if Item.objects.filter(pk=pk).delete()[0]:  # the other writer has not removed it
            publish_html(CHANNEL, None, swap="remove", target=f"[data-key='{pk}']")
        return
    else:
        item = Item.objects.filter(pk=chance.choice(keys or [0])).first()
        if item is None:  # the other writer has removed it
            return
        item.done = not item.done
        version = int(item.title.split()[0].removeprefix("v"))
        item.title = f"v{version + 1} changed & {chance.random()}"
        item.save()
    publish_html(CHANNEL, "todo/item.html", {"item": item}, swap="append")


def main(changes: int, rate: float, seed: int, mode: str) -> None:
    if mode == "fill":
        Item.objects.bulk_create(Item(title=f"v1 Item {number}") for number in range(changes))
        return
    chance = random.Random(seed)
    keys = list(Item.objects.values_list("pk", flat=True))
    began = time.monotonic()
    with open("changes", "ab", buffering=0) as log:
        for number in range(changes):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            change(chance, keys, mode)
            log.write(b".")


if __name__ == "__main__":
    numbers = sys.argv[1:4]
    main(int(numbers[0]), float(numbers[1]), int(numbers[2]), sys.argv[4])
