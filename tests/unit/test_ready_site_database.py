"""The database of the ready site, from the variable DJANGO_DATABASE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from messaging_project.databases import database

FILE = Path("/data/db.sqlite3")


@pytest.mark.parametrize(("place", "name"), [("", FILE), ("other.sqlite3", "other.sqlite3")])
def test_file_is_of_sqlite(place: str, name: Any) -> None:
    entry = database(place, FILE)
    assert (entry["ENGINE"], entry["NAME"]) == ("django.db.backends.sqlite3", name)


def test_url_is_of_postgresql() -> None:
    url = "postgresql://site:p%40ss@db.example.org:5433/shop?sslmode=require"
    assert database(url, FILE) == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "shop",
        "USER": "site",
        "PASSWORD": "p@ss",
        "HOST": "db.example.org",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "require"},
    }


def test_socket_of_a_private_server_is_a_host() -> None:
    entry = database("postgresql://postgres@/postgres?host=%2Ftmp%2Fsocket", FILE)
    assert (entry["HOST"], entry["NAME"]) == ("/tmp/socket", "postgres")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://site:hidden@db/shop",
        "postgresql://site:hidden@[db/shop",
        "postgresql://site:hidden@db/shop?colour=red",
    ],
)
def test_url_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        database(url, FILE)
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None
