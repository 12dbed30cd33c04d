"""Followed rows: rows of other models that a feed shows by forward relations.

    customer saved ──► its key noted ──commit──► keys of its orders ──► as orders that were saved
    customer deleted ──► keys of its orders, before ──► the same

More orders than `LIMIT` are not published: pages that show any of them load their elements again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import CASCADE, PROTECT, RESTRICT, Model, signals

from realtime.cluster.member import NewPublication
from realtime.hooks.site_values import to_payload
from realtime.live.rows import batches, sending
from realtime.live.rows.batches import Change, Transaction
from realtime.live.rows.channels import is_durable, names
from realtime.live.rows.feeds import LiveFeed, concrete, feeds, key_of, kinds
from realtime.server_api.transactions import in_transaction

logger = logging.getLogger("realtime.live")

LIMIT = 1000
"""Rows that are published for the changes of one path in a transaction, and channels of a pattern
in which pages load their elements again."""

SIGNALS_ROWS = (CASCADE, PROTECT, RESTRICT)
"""What deletes rows with signals of their own, or refuses."""


Found = Mapping[Any, Change] | list[NewPublication]
"""Rows by their primary keys; or, if they are too many, what is published in place of them."""


class Path:
    """A path of relations from a live model to rows that it shows."""

    def __init__(self, model: type[Model], text: str, field: Any) -> None:
        """
        Args:
            model: the live model that has the table.
            text: the names of the relations, joined by `__`.
            field: the last of them.
        """
        self.model = model
        self.text = text
        self.related: type[Model] = field.related_model
        self._found = f"_realtime_live following {model._meta.label} {text}"
        for kind in kinds(self.related):
            signals.post_save.connect(self._saved, sender=kind, weak=False)
            if field.remote_field.on_delete not in SIGNALS_ROWS:
                signals.pre_delete.connect(self._losing, sender=kind, weak=False)
                signals.post_delete.connect(self._lost, sender=kind, weak=False)

    # signals

    def _saved(self, instance: Model, created: bool, raw: bool, using: str, **_: Any) -> None:
        # a new object of an inheriting model may be a row that was there, and write into it
        is_new = created and concrete(type(instance)) is concrete(self.related)
        if is_new or raw or not self._is_followed():
            return
        keys = {key_of(self.related, instance)}
        if in_transaction(using) and batches.may_be_written(self.model):
            self._note(using, self._find(using, keys))
        else:
            batches.note_later(using, self._flush, keys)

    def _losing(self, instance: Model, using: str, **_: Any) -> None:
        """Remember the rows that show another one: it is deleted next."""
        if self._is_followed():
            found = self._find(using, {key_of(self.related, instance)})
            setattr(instance._state, self._found, found)

    def _lost(self, instance: Model, using: str, **_: Any) -> None:
        self._note(using, instance._state.__dict__.pop(self._found, {}))

    def _is_followed(self) -> bool:
        return any(self.text in feed.follows for feed in feeds.of(self.model))

    # rows

    def _find(self, using: str, keys: Collection[Any]) -> Found:
        """Return the rows that show others with these keys."""
        all_feeds = feeds.of(self.model)
        attributes = {name for feed in all_feeds for name in feed.attributes}
        rows = self.model._default_manager.using(using).filter(**{f"{self.text}__pk__in": keys})
        found = list(rows.values("pk", *attributes)[: LIMIT + 1])
        if len(found) > LIMIT:
            return self._reloads(rows, all_feeds)
        return {
            row["pk"]: Change({feed: names(feed.patterns, row) for feed in all_feeds})
            for row in found
        }

    def _reloads(self, rows: Any, all_feeds: Iterable[LiveFeed]) -> list[NewPublication]:
        logger.warning(
            "More than %d rows of %s show rows of %s that changed: pages load them again, in %d"
            " channels of each pattern at most",
            *(LIMIT, self.model.__name__, self.related.__name__, LIMIT),
        )
        channels: set[str] = set()
        for pattern in (each for feed in all_feeds for each in feed.patterns):
            attributes = [field.attname for field in pattern.fields.values()]
            alike = rows.order_by().values(*attributes).distinct() if attributes else [{}]
            for each in alike[:LIMIT]:
                channels |= names([pattern], each)
        reload = to_payload({"op": "put", "key": ""})
        return [NewPublication(channel, reload) for channel in sorted(channels)]

    # publishing

    def _note(self, using: str, found: Found) -> None:
        """Note changes of rows, for their publication after the commit."""
        if isinstance(found, Mapping):
            if found:
                batches.note(using, self.model, found)
        elif in_transaction(using):
            sending.write([each for each in found if is_durable(each.channel)])
            others = [each for each in found if not is_durable(each.channel)]
            transaction.on_commit(partial(sending.send, others), using=using, robust=True)
        else:
            sending.send(found)

    def _flush(self, using: str, keys: Iterable[Any], of: Transaction | None) -> None:
        """Publish rows that show others with these keys. Never raises. `of`: as for `flush`."""
        try:
            for some in batches.chunks(keys):
                found = self._find(using, some)
                if isinstance(found, Mapping):
                    batches.flush(using, self.model, found, of)
                else:
                    sending.send(found)
        except Exception:
            name = self.model.__name__
            logger.exception("Rows of %s are not published: what they show changed", name)


_paths: dict[tuple[type[Model], str], Path] = {}


def follow(feed: LiveFeed) -> None:
    """Listen to the signals of the rows that a feed follows."""
    model = concrete(feed.model)
    for text, field in feed.follows.items():
        if (model, text) not in _paths:
            _paths[model, text] = Path(model, text, field)
