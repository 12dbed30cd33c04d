"""Users of the site from user IDs, and back.

The ID of a user is the text of the primary key. User IDs come from tokens and hooks, so they may be
any text. Only the exact text of a primary key means its user: neither "007" nor " 7" is user 7.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import F, QuerySet
from django.db.models.lookups import In

from realtime.protocol.messages import UserID


def with_ids(ids: Iterable[UserID]) -> QuerySet[Any]:
    """Return the users of the site with these IDs; IDs of no user are left out."""
    model = get_user_model()
    return with_keys(model._default_manager.all(), keys_of(ids))


def keys_of(ids: Iterable[UserID]) -> list[Any]:
    """Return the primary keys that have these texts."""
    convert = get_user_model()._meta.pk.to_python
    keys = []
    for text in ids:
        try:
            key = convert(text)
        except (ValidationError, ValueError, TypeError, OverflowError):
            continue
        if str(key) == text and is_storable(key):
            keys.append(key)
    return keys


def is_storable(key: object) -> bool:
    """Return whether databases take such a key: PostgreSQL no null character, none larger ones."""
    if isinstance(key, int):
        return -(2**63) <= key < 2**63
    return not (isinstance(key, str) and "\0" in key)


def with_keys(queryset: QuerySet[Any], keys: Collection[Any]) -> QuerySet[Any]:
    """Return the rows of a queryset that have one of these primary keys."""
    return queryset.filter(_AnyOf(F("pk"), list(keys))) if keys else queryset.none()


class _AnyOf(In):
    """IN with one parameter where the database can: it has a limit for their number.

    User IDs may be any text. So keys that no row can have match nothing, and are no errors.
    """

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        values = self._prepared(connection)
        if not all(isinstance(value, int | str) for value in values):
            return self._plain(compiler, connection)
        left, parameters = self.process_lhs(compiler, connection)
        sql = f"{left} IN (SELECT value FROM json_each(%s))"
        return sql, [*parameters, json.dumps(values)]

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, parameters = self.process_lhs(compiler, connection)
        kind = _widest(self.lhs.output_field.rel_db_type(connection))
        return f"{left} = ANY(%s::{kind}[])", [*parameters, self._prepared(connection)]

    def as_mysql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        # collations ignore case, accents and spaces at the end; the first IN uses the index
        sql, parameters = self._plain(compiler, connection)
        values = self._prepared(connection)
        if not all(isinstance(value, str) for value in values):
            return sql, parameters
        left, of_left = self.process_lhs(compiler, connection)
        marks = ", ".join(["%s"] * len(values))
        exact = f"BINARY {left} IN ({marks})"
        return f"({sql} AND {exact})", [*parameters, *of_left, *values]

    def _plain(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        sql, parameters = super().as_sql(compiler, connection)
        return sql, list(parameters)

    def _prepared(self, connection: Any) -> list[Any]:
        field = self.lhs.output_field
        return [field.get_db_prep_value(key, connection, prepared=False) for key in self.rhs]


def _widest(kind: str) -> str:
    """Return the type of PostgreSQL with which a cast neither cuts a value off nor refuses it.

    Args:
        kind: the type of a column, such as "varchar(150)" or "integer".
    """
    name = kind.partition("(")[0]
    return "bigint" if name in ("smallint", "integer") else name
