"""Examples of types, made of their schemas."""

from __future__ import annotations

import json
from datetime import datetime, time
from typing import Annotated, Any

import msgspec
import pytest

from realtime.typed.adapters import adapter_of
from realtime.typed.examples import example
from tests.unit.typed.schemas import TYPES, Outer


@pytest.mark.parametrize("declared", [declared for declared, _, _ in TYPES])
def test_example_is_of_its_type(declared: Any) -> None:
    for adapter in adapter_of(declared).members():
        schema, named = adapter.schema()
        adapter.decode(json.dumps(example(schema, named)).encode())


class Dates(msgspec.Struct, tag=True):
    """Dates and times in every kind of place."""

    at: datetime
    times: list[time | None]
    pairs: dict[str, tuple[datetime, str]]
    zoned: Annotated[datetime, msgspec.Meta(tz=True)]
    other: Dates | Other | None = None


class Other(msgspec.Struct, tag=True):
    """A date in a type that another one names."""

    day: datetime | int | None = None


def test_dates_have_their_formats_wherever_they_stand() -> None:
    _, named = adapter_of(Dates).schema()
    text = json.dumps(named)
    assert text.count('"format": "date-time"') == 4
    assert text.count('"format": "time"') == 1


class Order(msgspec.Struct, tag=True):
    at: datetime


class OrderLine(msgspec.Struct, tag=True):
    """Its name begins as that of another type."""

    at: str
    sent: datetime


def test_dates_have_their_formats_in_types_whose_names_begin_alike() -> None:
    for declared in (Order | OrderLine, OrderLine | Order):
        _, named = adapter_of(declared).schema()
        assert named["Order"]["properties"]["at"]["format"] == "date-time"
        assert named["OrderLine"]["properties"]["sent"]["format"] == "date-time"
        assert "format" not in named["OrderLine"]["properties"]["at"]


def test_model_in_a_model_of_the_same_name_has_a_schema_of_its_own() -> None:
    schema, named = adapter_of(Outer).schema()
    assert schema == {"$ref": "#/components/schemas/Item_"}
    assert list(named["Item_"]["properties"]) == ["item"]
    assert list(named["Item"]["properties"]) == ["inner"]


def test_schema_that_names_itself_ends() -> None:
    itself = {"$ref": "#/components/schemas/A"}
    named = {"A": {"type": "object", "properties": {"a": itself}, "required": ["a"]}}
    assert len(json.dumps(example(itself, named))) < 100
