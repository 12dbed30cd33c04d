"""Types of a shop, in each of the libraries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NotRequired, TypedDict

import msgspec
from pydantic import BaseModel
from rest_framework import serializers


class Changed(msgspec.Struct, tag=True):
    """An order has other lines."""

    lines: int


class Shipped(msgspec.Struct, tag=True):
    """An order has left."""

    at: datetime
    by: str | None = None


class Comment(msgspec.Struct):
    """A note of a customer."""

    text: str
    stars: int = 0


@dataclass
class Place:
    """Where an order is."""

    x: float
    y: float


class Note(TypedDict):
    """A note, as a dict."""

    text: str
    stars: NotRequired[int]


class Payment(BaseModel):
    """A payment, as a model."""

    amount: int
    notes: list[str] = []


class Rating(serializers.Serializer[Any]):
    """A rating, as a serializer."""

    stars = serializers.IntegerField(min_value=1, max_value=5)
    words = serializers.ListField(child=serializers.CharField(max_length=5), required=False)
