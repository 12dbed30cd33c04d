"""What the code of a site passes: users, data with a JSON form, and an encoder of its own."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import IntegerChoices, TextChoices
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from msgspec import Raw

from realtime.checks import options as options_checks
from realtime.config import sources
from realtime.hooks.answers import Connected, Data
from realtime.hooks.site_values import to_payload, user_id


class Colour(TextChoices):
    RED = "red", "Red"


class Size(IntegerChoices):
    SMALL = 1, "Small"


class Ratio(float):
    """A number of a library."""


USERS = [
    ("17", "17"),
    ("", ""),
    (17, "17"),
    (Size.SMALL, "1"),
    (Colour.RED, "red"),
    (mark_safe("17"), "17"),
    (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (User(pk=17), "17"),
    (SimpleLazyObject(lambda: User(pk=17)), "17"),
    (AnonymousUser(), ""),
]


@pytest.mark.parametrize(("user", "expected"), USERS)
def test_user_or_id_becomes_a_user_id(user: Any, expected: str) -> None:
    assert user_id(user) == expected
    assert type(user_id(user)) is str


@pytest.mark.parametrize("user", [None, True, 1.5, b"17", 1j, ["17"], User()], ids=repr)
def test_value_that_is_neither_user_nor_id_is_refused(user: Any) -> None:
    with pytest.raises(TypeError, match="user"):
        user_id(user)


def test_user_id_with_a_lone_surrogate_is_refused() -> None:
    # no message, no record and no request to a proxy could carry it
    with pytest.raises(TypeError, match="user ID must be text in UTF-8"):
        user_id("a\ud83d")


VALUES = [
    (mark_safe("<b>"), "<b>"),
    ({mark_safe("key"): mark_safe("value")}, {"key": "value"}),
    ([Colour.RED, Size.SMALL, Ratio(0.5)], ["red", 1, 0.5]),
    ({Colour.RED: 1}, {"red": 1}),
    (datetime(2026, 11, 2, 3, 4, 5, tzinfo=UTC), "2026-11-02T03:04:05Z"),
    (date(2026, 11, 2), "2026-11-02"),
    (timedelta(days=1), "P1D"),
    (Decimal("1.10"), "1.10"),
    (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    ({1}, [1]),
    (2**200, 2**200),
    ((None, mark_safe("a")), [None, "a"]),
    (Raw(b"null"), None),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_types_of_django_and_python_have_a_json_form(value: object, expected: object) -> None:
    assert json.loads(to_payload(value).raw) == expected


def test_lazy_translation_is_text_in_the_active_language() -> None:
    with translation.override("de"):
        assert json.loads(to_payload({"day": gettext_lazy("Monday")}).raw) == {"day": "Montag"}


@pytest.mark.parametrize(
    "value",
    [
        object(),
        1j,
        "\ud800",
        float("nan"),
        [None, float("inf")],
        {(1, 2): 3},
        {None: 1},
        Ratio("nan"),
    ],
)
@pytest.mark.parametrize("encoder", ["", "django.core.serializers.json.DjangoJSONEncoder"])
def test_value_without_a_json_form_is_refused(value: object, encoder: str, settings: Any) -> None:
    settings.REALTIME = {"json_encoder": encoder}
    if encoder and value in ({None: 1}, "\ud800"):
        return  # Python's encoder writes "null", and an escape
    with pytest.raises(TypeError):
        to_payload(value)


@pytest.mark.parametrize("encoder", ["", "django.core.serializers.json.DjangoJSONEncoder"])
def test_value_that_contains_itself_is_refused(encoder: str, settings: Any) -> None:
    settings.REALTIME = {"json_encoder": encoder}
    value: list[Any] = []
    value.append(value)
    with pytest.raises((TypeError, ValueError)):
        to_payload(value)


# an encoder of the site


class Point:
    """A type of the site."""

    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y


class Encoder(json.JSONEncoder):
    """Writes types of the site, and dates in a form of its own."""

    def default(self, value: Any) -> Any:
        if isinstance(value, Point):
            return [value.x, value.y]
        if isinstance(value, date):
            return value.strftime("%d.%m.%Y")
        return super().default(value)


@pytest.fixture
def encoder(settings: Any) -> None:
    settings.REALTIME = {"json_encoder": f"{__name__}.Encoder"}


@pytest.mark.usefixtures("encoder")
def test_encoder_of_the_site_decides_about_types_that_json_does_not_know() -> None:
    value = {"at": Point(1, 2), "on": date(2026, 11, 2), "name": mark_safe("é")}
    expected = {"at": [1, 2], "on": "02.11.2026", "name": "é"}
    assert json.loads(to_payload(value).raw) == expected
    info = Connected(info=Data(value), data=value).identity()
    assert info.info is not None
    assert info.data is not None
    assert json.loads(info.info.raw) == json.loads(info.data.raw) == expected


@pytest.mark.parametrize("path", ["nowhere.Encoder", "json.dumps", "Encoder", f"{__name__}.Point"])
def test_encoder_that_cannot_be_loaded_is_an_error_of_the_checks(path: str, settings: Any) -> None:
    settings.REALTIME = {"json_encoder": path}
    [message] = options_checks.check_json_encoder(sources.examine())
    assert message.id == "realtime.E024"
    with pytest.raises(ImportError):
        to_payload(1)


@pytest.mark.usefixtures("encoder")
def test_encoder_that_can_be_loaded_is_none() -> None:
    assert options_checks.check_json_encoder(sources.examine()) == []
