"""What happens to rows: signals of models, collected until the commit.

    saved, deleted, m2m changed ──► noted in a batch ──commit──► read ──► put, or remove
    announce                   ───►        └──rolled back──► nothing

A batch belongs to one transaction, and to one nesting of savepoints: it is a commit hook, so Django
drops it when its savepoint, or the transaction, is rolled back. What is published is read after the
commit, with one query for all rows: so it is the last state, as databases keep it, also of
fields that the changed object had not loaded. Without a transaction that happens at once.

Where a channel is durable, its publications belong to the transaction: they are made and
written in it, at each change, and those of earlier changes of the same row are taken back.

A row that left a channel is removed there. The object knows where the row was: the fields that name
channels are remembered when it is loaded, and when it is saved.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial, wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.db import router
from django.db.models import Model, QuerySet, signals

from realtime.live.rows import batches
from realtime.live.rows.batches import Change
from realtime.live.rows.channels import Values, names, values
from realtime.live.rows.feeds import LiveFeed, feeds, key_of, kinds


class Watched:
    """A model with a table that has feeds."""

    def __init__(self, model: type[Model]) -> None:
        self.model = model
        self.feeds: list[LiveFeed] = feeds.of(model)
        self.attributes: set[str] = set()
        """Those of a row by which channels of any feed are named."""
        # attributes of an object's state, of this table: an object may be a row of several
        self._memory = f"_realtime_live {model._meta.label}"
        self._cleared = f"_realtime_live cleared {model._meta.label}"
        self._raw = f"_realtime_live raw {model._meta.label}"

    # memory

    def remember(self, instance: Model, fields: Container[str] | None = None) -> None:
        """Remember where a row is, of an object that was loaded.

        Args:
            instance: the object.
            fields: the names of those that were loaded now; None: all of them.
        """
        now = values(self.attributes, instance)
        if fields is not None:
            # the others may have been changed, and not saved
            last = self._known(instance)[-1:] or [{}]
            now = {**last[0], **{name: now[name] for name in now if self._is_in(name, fields)}}
        self._settle(instance, now)

    def _is_in(self, attribute: str, fields: Container[str]) -> bool:
        return attribute in fields or self.model._meta.get_field(attribute).name in fields

    def _settle(self, instance: Model, now: Values) -> None:
        """Remember where a row is, and forget where it was: pages know."""
        setattr(instance._state, self._memory, [now])

    def _known(self, instance: Model) -> list[Values]:
        """Return where a row was since the last commit, as far as the object knows."""
        found: list[Values] = getattr(instance._state, self._memory, [])
        return found

    # signals

    def saved(self, instance: Model, created: bool, raw: bool, using: str, **_: Any) -> None:
        """Note that a row was saved; a fixture is loaded without notice."""
        setattr(instance._state, self._raw, raw)
        if raw:
            return
        if created:  # an object that was loaded, and is now another row, was nowhere
            self.remember(instance)
        self.note(using, [instance])

    def deleted(self, instance: Model, using: str, **_: Any) -> None:
        """Note that a row was deleted."""
        self.note(using, [instance])

    def related(
        self,
        field: Any,
        instance: Model,
        action: str,
        reverse: bool,
        pk_set: set[Any] | None,
        using: str,
        **_: Any,
    ) -> None:
        """Note that a relation to many of the model was changed, from either side.

        A fixture sets the relations of the objects that it has saved.
        """
        if getattr(instance._state, self._raw, False):
            return
        also_others = reverse or field.remote_field.symmetrical
        if action == "pre_clear" and also_others:
            # afterwards it is not known which rows these were
            setattr(instance._state, self._cleared, _others(field, instance, reverse, using))
        if not action.startswith("post_"):
            return
        keys = set(pk_set or ()) if also_others else set()
        if action == "post_clear":
            keys |= instance._state.__dict__.pop(self._cleared, set())
        self.note(using, [] if reverse else [instance], keys)

    def losing(self, field: Any, instance: Model, using: str, **_: Any) -> None:
        """Remember the rows that refer to another one by a relation to many: it is deleted next."""
        keys = _others(field, instance, True, using)
        if field.remote_field.symmetrical:
            keys |= _others(field, instance, False, using)
        setattr(instance._state, self._lost(field), keys)

    def lost(self, field: Any, instance: Model, using: str, **_: Any) -> None:
        """Note the rows that referred to another one, which was deleted."""
        self.note(using, [], instance._state.__dict__.pop(self._lost(field), set()))

    def _lost(self, field: Any) -> str:
        return f"_realtime_live lost {field}"

    def note(self, using: str, instances: Iterable[Model], keys: Iterable[Any] = ()) -> None:
        """Note changes of rows, for their publication after the commit.

        Args:
            using: alias of the database.
            instances: rows.
            keys: primary keys of more rows, of which it is not known where they were.
        """
        found: dict[Any, Change] = {key: Change() for key in keys}
        for instance in instances:
            change = found.setdefault(key_of(self.model, instance), Change())
            now = values(self.attributes, instance)
            places = [each for each in self._known(instance) if each != now] + [now]
            setattr(instance._state, self._memory, places)
            change.committed.append(partial(self._settle, instance, now))
            for feed in self.feeds:
                for each in places:
                    change.channels.setdefault(feed, set()).update(names(feed.patterns, each))
        if found:
            batches.note(using, self.model, found)


_watched: dict[type[Model], Watched] = {}


def watch(model: type[Model]) -> None:
    """Listen to the signals of a model with a table, and remember where its rows are."""
    is_new = model not in _watched
    known = _watched.setdefault(model, Watched(model))
    known.attributes = {name for feed in known.feeds for name in feed.attributes}
    if not is_new:
        return
    for kind in kinds(model):
        signals.post_save.connect(known.saved, sender=kind, weak=False)
        signals.post_delete.connect(known.deleted, sender=kind, weak=False)
    for field in model._meta.many_to_many:
        through = field.remote_field.through
        signals.m2m_changed.connect(partial(known.related, field), sender=through, weak=False)
        # Django sends no signal of the relation then
        for kind in kinds(field.related_model):
            signals.pre_delete.connect(partial(known.losing, field), sender=kind, weak=False)
            signals.post_delete.connect(partial(known.lost, field), sender=kind, weak=False)
    _remember_at_loading(model, known)


def _others(field: Any, instance: Model, reverse: bool, using: str) -> set[Any]:
    """Return the keys of the rows to which a relation of the model leads from an object."""
    here, there = field.m2m_field_name(), field.m2m_reverse_field_name()
    if reverse:
        here, there = there, here
    pairs = field.remote_field.through._base_manager.using(using).filter(**{here: instance})
    return set(pairs.values_list(f"{there}__pk", flat=True))


def _remember_at_loading(model: type[Model], known: Watched) -> None:
    """Have objects of a model remember where their rows are, when they are loaded."""
    from_db: Any = model.from_db.__func__  # type: ignore[attr-defined]
    refresh_from_db: Any = model.refresh_from_db

    @wraps(from_db)
    def remembering_from_db(cls: type[Model], *arguments: Any, **named: Any) -> Model:
        instance: Model = from_db(cls, *arguments, **named)
        known.remember(instance)
        return instance

    @wraps(refresh_from_db)
    def remembering_refresh(
        self: Model, using: Any = None, fields: Any = None, **named: Any
    ) -> None:
        fields = None if fields is None else list(fields)
        refresh_from_db(self, using, fields, **named)
        known.remember(self, fields)

    patched: Any = model
    patched.from_db = classmethod(remembering_from_db)
    patched.refresh_from_db = remembering_refresh


def announce(rows: QuerySet[Any] | Iterable[Model]) -> None:
    """Publish rows that were changed without signals: by `bulk_update`, `update`, or raw SQL.

    They go out as those that are saved: after the commit, in one batch, which costs one query. A
    QuerySet is read then. Objects know in which channels they were, so a row that has left
    a channel, or that was deleted, is removed there; of the rows of a QuerySet that is not known.

    Args:
        rows: a QuerySet, or objects, of one live model.

    Raises:
        TypeError: they are something else, such as `values()`.
        ValueError: the model is not live.
    """
    if isinstance(rows, QuerySet):
        known = _watched_or_raise(rows.model)
        query: Any = rows
        if query._fields is not None:
            raise TypeError("announce takes a QuerySet of objects, not of values")
        using = query._db or router.db_for_write(rows.model)
        batches.note_query(using, known.model, _whole(query.using(using)))
        return
    objects = list(rows)
    if not objects:
        return
    if not all(isinstance(each, Model) for each in objects):
        raise TypeError("announce takes a QuerySet, or objects of a live model")
    groups: dict[tuple[str, Watched], list[Model]] = {}
    for each in objects:
        using = each._state.db or router.db_for_write(type(each), instance=each)
        groups.setdefault((using, _watched_or_raise(type(each))), []).append(each)
    for (using, known), instances in groups.items():
        known.note(using, instances)


def _whole(query: Any) -> Any:
    """Return a query with all fields, which can be made after the transaction."""
    if not query.query.combinator:
        query = query.defer(None)
    query.query.select_for_update = False
    return query


async def aannounce(rows: QuerySet[Any] | Iterable[Model]) -> None:
    """Publish rows that were changed without signals. Async version of `announce`."""
    await sync_to_async(announce)(rows)


def _watched_or_raise(model: type[Model]) -> Watched:
    """Return what is known of the table of a model, or of the one that it inherits.

    Raises:
        ValueError: neither is live.
    """
    for each in model.__mro__:
        if issubclass(each, Model) and (known := _watched.get(each)) is not None:
            return known
    raise ValueError(f"{model.__name__} is not live: register a feed with realtime.live.model")
