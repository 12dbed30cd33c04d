"""Changes the list of a copy of the to-do example, as a worker beside its servers.

    python writer.py <changes> <per second> <seed> <fill | rows | beside | "">

It runs in the directory of the copy. Each change is published as the views of the example do. With
"fill", rows are added, and nothing is published. With "rows", the feed of the copy publishes. With
"beside", too, and no row is added, so that another writer may do that at the same time: new rows
stand in the order in which they come.
"""

import os
import random
import sys
import time
from contextlib import suppress

import django
from django.db import DatabaseError

sys.path.insert(0, os.getcwd())
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()

from todo.models import Item  # type: ignore[import-not-found]  # noqa: E402

from realtime.live import publish_html  # noqa: E402

CHANNEL = "todo:all"


def change(chance: random.Random, keys: list[int], mode: str) -> None:
    """Add an item, remove one, or change one."""
    kind = chance.random()
    if (kind < 0.15 or not keys) and mode != "beside":
        item = Item.objects.create(title=f"<new> {chance.random()}")
        keys.append(item.pk)
    elif kind < 0.3 and keys:
        pk = keys.pop(chance.randrange(len(keys)))
        Item.objects.filter(pk=pk).delete()
        if not mode:
            publish_html(CHANNEL, None, swap="remove", target=f"[data-key='{pk}']")
        return
    else:
        item = Item.objects.filter(pk=chance.choice(keys or [0])).first()
        if item is None:  # the other writer has removed it
            return
        item.done = not item.done
        item.title = f"changed & {chance.random()}"
        with suppress(DatabaseError):  # removed meanwhile
            item.save(force_update=True)
    if not mode:
        publish_html(CHANNEL, "todo/item.html", {"item": item}, swap="append")


def main(changes: int, rate: float, seed: int, mode: str) -> None:
    if mode == "fill":
        Item.objects.bulk_create(Item(title=f"Item {number}") for number in range(changes))
        return
    chance = random.Random(seed)
    keys = list(Item.objects.values_list("pk", flat=True))
    began = time.monotonic()
    for number in range(changes):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        change(chance, keys, mode)


if __name__ == "__main__":
    numbers = sys.argv[1:4]
    main(int(numbers[0]), float(numbers[1]), int(numbers[2]), sys.argv[4])
