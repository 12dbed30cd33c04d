"""Feeds: which models are live, in which channels, what is published of a row, who may see it.

    @live.model(Order)
    class LiveOrder(live.Feed):
        channels = ["order:{pk}", "team:{team_id}:orders"]
        fragment = "shop/orders.html#row"

        def may_view(request, pk=None, team_id=None):
            ...

A feed is of rows, not of classes: proxies of the model, and models that inherit its table, are rows
of it as well. `changes` finds out what happens to rows, `permission` asks `may_view`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Model, QuerySet
from django.utils import timezone, translation

from realtime.cluster.member import NOTHING
from realtime.hooks.site_values import to_payload
from realtime.live.html import render
from realtime.live.rows.channels import ChannelPattern, pattern_of
from realtime.payload import Payload

logger = logging.getLogger("realtime.live")

RECHECK = 40.0
"""Seconds. With the time that hooks may take, and one failure, it stays below a minute."""


class Feed:
    """Base class of feeds; see the module. Subclasses are registered with `model`."""

    channels: ClassVar[Sequence[str]] = ()
    """Patterns of channels. What stands in braces is a field of the row, or `pk`. A row whose
    field is empty has no channel of that pattern."""
    fields: ClassVar[Sequence[str]] = ()
    """Publish these attributes of the row as `data`. Of a foreign key it is the key."""
    serializer: ClassVar[Callable[[Any], Any] | None] = None
    """Publish what this makes of the row: a serializer of REST framework, or any function."""
    fragment: ClassVar[str] = ""
    """Publish this template, or partial of one, as `html`. It gets no request."""
    only_ids: ClassVar[bool] = False
    """Publish the key alone: each page gets the block again, with the rights of its visitor."""
    follows: ClassVar[Sequence[str]] = ()
    """Foreign keys, such as `customer` or `customer__company`: rows that this one shows. When they
    change, this row is published, too."""
    recheck: ClassVar[float] = RECHECK
    """Seconds after which `may_view` is asked again for each subscription, at the latest."""
    may_view: ClassVar[Callable[..., Any] | None] = None
    """Whether the client of a `hooks.SubscribeRequest` may subscribe: called without `self`, with
    the request and the names of the channel as text. Without it, no client may. It may be a
    coroutine function."""

    def rows(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return a query with what the fragment needs: `select_related`, annotations and so on."""
        return queryset

    def context(self, row: Any) -> dict[str, Any]:
        """Return the values for the fragment: the row as `object`, and by the name of its model."""
        return {"object": row, row._meta.model_name: row}


class LiveFeed:
    """A feed that is registered."""

    def __init__(self, model: type[Model], kind: type[Feed]) -> None:
        """
        Raises:
            TypeError, ValueError, FieldDoesNotExist: the feed has a mistake.
        """
        self.model = model
        self.kind = kind
        self.name = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(kind.channels, str) or not kind.channels:
            raise ValueError(f"{self.name} needs channels, a list of patterns")
        for name in ("fields", "follows"):
            if isinstance(getattr(kind, name), str):
                raise TypeError(f"{name} of {self.name} must be a list of names")
        shown = bool(kind.fields or kind.serializer or kind.fragment)
        if shown is kind.only_ids or (kind.fields and kind.serializer):
            raise ValueError(
                f"{self.name} says what it publishes: fragment, and fields or serializer; or"
                " only_ids"
            )
        self.patterns: Sequence[ChannelPattern] = [
            pattern_of(each, model) for each in kind.channels
        ]
        fields = [field for each in self.patterns for field in each.fields.values()]
        self.attributes = {field.attname for field in fields}
        """Those of a row by which its channels are named."""
        self.fields = {name for field in fields for name in (field.name, field.attname)}
        """The names of these fields."""
        self.follows: dict[str, Any] = {}
        """Path of relations → the last of them."""
        for path in kind.follows:
            self.follows |= _relations(model, path)
        self.feed = kind()

    def put(self, row: Any, *, can_fail: bool = False) -> Payload:
        """Return the publication of a row as it is.

        Where it cannot be made, the page learns that there is a change, and gets the block again.

        Args:
            row: the row.
            can_fail: a failure of the database is raised: the transaction is broken by it.
        """
        message = {"op": "put", "key": str(row.pk)}
        made = self._payload(row, lambda: message | self._shown(row), can_fail)
        return to_payload(message) if made is None else made

    def entry(self, row: Any, *, can_fail: bool = False) -> Payload:
        """Return the data of a row in a map: null where they cannot be made. Args: as `put`."""

        def shown() -> Any:
            data = self._shown(row)
            return data if "html" in data else data.get("data")

        return self._payload(row, shown, can_fail) or NOTHING

    def _payload(self, row: Any, make: Callable[[], Any], can_fail: bool) -> Payload | None:
        try:
            # of the site, not of the visitor who changed the row: other visitors read it
            with translation.override(settings.LANGUAGE_CODE), timezone.override(None):
                return to_payload(make())
        except Exception as error:
            if can_fail and isinstance(error, DatabaseError):
                raise
            logger.exception("%s cannot publish what %r shows", self.name, str(row.pk))
            return None

    def _shown(self, row: Any) -> dict[str, Any]:
        kind = self.kind
        shown: dict[str, Any] = {}
        if kind.fragment:
            shown["html"] = render(kind.fragment, self.feed.context(row))
        if kind.fields:
            shown["data"] = {name: _value(row, name) for name in kind.fields}
        elif kind.serializer is not None:
            made = kind.serializer(row)
            shown["data"] = getattr(made, "data", made)
        return shown


def _relations(model: Any, path: str) -> dict[str, Any]:
    """Return a path of foreign keys and each beginning of it, with the last field of each.

    Raises:
        FieldDoesNotExist: a part is no field.
        ValueError: a part is no foreign key.
    """
    found: dict[str, Any] = {}
    text = ""
    for name in path.split("__"):
        field = model._meta.get_field(name)
        if not (field.concrete and (field.many_to_one or field.one_to_one)):
            raise ValueError(f"follows: {name!r} in {path!r} is no foreign key of {model.__name__}")
        text = f"{text}__{field.name}" if text else field.name
        found[text], model = field, field.related_model
    return found


def removed(key: str) -> Payload:
    """Return the publication that a row is not in a channel any more."""
    return to_payload({"op": "remove", "key": key})


def _value(row: Any, name: str) -> Any:
    """Return an attribute of a row; of a relation the keys."""
    fields: Mapping[str, Any] = {field.name: field for field in row._meta.get_fields()}
    field = fields.get(name)
    if field is not None and field.many_to_many:
        return [each.pk for each in getattr(row, name).all()]
    return getattr(row, field.attname if field is not None and field.concrete else name)


class Feeds:
    """The feeds of a site."""

    def __init__(self) -> None:
        self._feeds: dict[type[Model], list[LiveFeed]] = {}
        """Model with a table → its feeds."""

    def add(self, feed: LiveFeed) -> None:
        """Register a feed."""
        self._feeds.setdefault(concrete(feed.model), []).append(feed)

    def all(self) -> list[LiveFeed]:
        """Return all feeds."""
        return [feed for feeds in self._feeds.values() for feed in feeds]

    def of(self, model: type[Model]) -> list[LiveFeed]:
        """Return the feeds of a model with a table."""
        return self._feeds.get(model, [])


feeds = Feeds()
"""The feeds of the modules `realtime.py` in the site's apps."""


def kinds(model: type[Model]) -> list[type[Model]]:
    """Return the models whose objects are rows of a model's table: also proxies, and heirs."""
    table = concrete(model)
    return [each for each in apps.get_models(include_auto_created=True) if issubclass(each, table)]


def key_of(model: type[Model], instance: Model) -> Any:
    """Return the primary key of a row of a table, also of one that inherits the table."""
    pk: Any = model._meta.pk
    return pk.to_python(instance.__dict__.get(pk.attname, instance.pk))


def concrete(model: type[Model]) -> type[Model]:
    """Return the model that has the table: that of a proxy is another one."""
    return model._meta.concrete_model or model
