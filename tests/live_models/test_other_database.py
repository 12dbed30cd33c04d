"""A row in another database than the default one, where it was changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections, transaction
from pytest_django import DjangoDbBlocker

from realtime.live import announce
from realtime.testing import Outbox
from tests.live_models.parts import everywhere
from tests.live_models.shop.models import Order, Tag

pytestmark = pytest.mark.django_db(transaction=True)

OTHER = "other"


@pytest.fixture(autouse=True)
def other(django_db_blocker: DjangoDbBlocker, tmp_path: Path) -> Iterator[None]:
    """A second database, with the tables of the shop."""
    name = str(tmp_path / "other.sqlite3")
    with django_db_blocker.unblock():
        connections.settings[OTHER] = connections["default"].settings_dict | {"NAME": name}
        with connections[OTHER].schema_editor() as editor:
            editor.create_model(Tag)
            editor.create_model(Order)
        yield
        connections[OTHER].close()
        del connections.settings[OTHER], connections[OTHER]


def test_row_is_read_where_it_was_changed(outbox: Outbox) -> None:
    order = Order.objects.using(OTHER).create(team="7", title="there")
    assert outbox == everywhere(order, title="there")
    assert not Order.objects.exists()


def test_commit_there_is_what_counts(outbox: Outbox) -> None:
    with transaction.atomic(using=OTHER):
        order = Order.objects.using(OTHER).create(team="7")
        assert outbox == []
    assert outbox == everywhere(order)
    outbox.clear()

    with transaction.atomic(using=OTHER):
        order.save()
        transaction.set_rollback(True, using=OTHER)
    assert outbox == []


def test_rows_of_another_database_are_announced(outbox: Outbox) -> None:
    order = Order.objects.using(OTHER).create(team="7")
    outbox.clear()
    announce(Order.objects.using(OTHER))
    announce([order])
    assert outbox == [*everywhere(order), *everywhere(order)]
