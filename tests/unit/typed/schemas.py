"""Types with values: what the documents of typed channels must be able to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pydantic
from rest_framework import serializers

from tests.unit.typed.shop import Changed, Comment, Note, Payment, Place, Rating, Shipped

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = 'b"l`u${e}'


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Pair(NamedTuple):
    x: int
    y: str = ""


class Row(msgspec.Struct, array_like=True):
    a: int
    b: str | None = None


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


class Renamed(msgspec.Struct, rename="kebab"):
    first_name: str
    last_name: str | None = None


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    a: int


class Tagged(msgspec.Struct, tag_field="kind", tag="t"):
    value: float


class Numbered(msgspec.Struct, tag_field="kind", tag=7):
    value: bool


class Box(msgspec.Struct, Generic[T]):
    content: T


class Channels(msgspec.Struct):
    """Its name is one that the declarations need."""

    names: list[str]


class Odd(msgspec.Struct):
    default: Annotated[str, msgspec.Meta(description="a */ comment", max_length=9)]
    discriminator: str = ""


@dataclass
class Deep:
    places: dict[str, list[Place | None]]
    by: Colour = Colour.RED
    more: Any = None
    level: Level = Level.LOW
    when: list[datetime] = field(default_factory=list)


class Partial(TypedDict, total=False):
    a: int
    b: NotRequired[list[str]]


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str | None = None


class Kennel(pydantic.BaseModel):
    pets: list[Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]]
    position: tuple[int, str] = (0, "")
    scores: dict[str, float] = {}


class Node(pydantic.BaseModel, extra="forbid"):
    next: Node | None = None


class Json(pydantic.RootModel["str | None | list[Json] | dict[str, Json]"]):
    """A type that names itself, without a field in between."""


class Item(pydantic.BaseModel):
    inner: Any = None


class Callback(pydantic.BaseModel):
    """No schema says what this default is."""

    function: Callable[[int], int] = abs
    number: int


def outer() -> Any:
    """A model that holds another one of the same name."""
    return pydantic.create_model("Item", item=(Item, ...))


Outer = outer()


class Order(serializers.Serializer[Any]):
    rating = Rating()
    ratings = Rating(many=True, required=False)
    state = serializers.ChoiceField(choices=["open", "closed"])
    at = serializers.DateTimeField(allow_null=True)
    nullable = serializers.BooleanField(required=False)


NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)

TYPES: list[tuple[Any, list[Any], Any]] = [
    (str, ["", "a\u2028`"], 1),
    (int, [0, -5], "0"),
    (float, [0.5, 3.0], None),
    (bool, [True], 1),
    (type(None), [None], 0),
    (datetime, [NOON], 5),
    (date, [NOON.date()], 5),
    (time, [time(12)], 5),
    (timedelta, [timedelta(hours=1)], None),
    (UUID, [UUID(int=1)], 1),
    (Decimal, [Decimal("1.5")], None),
    (bytes, [b"abc"], 5),
    (list[int], [[], [1, 2]], ["1"]),
    (set[str], [{"a"}], [1]),
    (tuple[int, str], [(1, "a")], [1]),
    (tuple[int, ...], [(), (1, 2, 3)], ["a"]),
    (dict[str, int], [{}, {"a": 1}], {"a": "1"}),
    (dict[str, Any], [{"a": [1, None]}], []),
    (int | None, [None, 1], "a"),
    (int | str | list[bool], [1, "a", [True]], None),
    (Literal["a", "b", 3, None], ["a", 3, None], "c"),
    (Colour, [Colour.RED, Colour.BLUE], "green"),
    (Level, [Level.HIGH], 3),
    (Pair, [Pair(1), Pair(1, "a")], ["a"]),
    (Row, [Row(1), Row(1, "b")], ["a"]),
    (Comment, [Comment("a"), Comment("a", 2)], {"stars": 1}),
    (Tree, [Tree("a", [Tree("b")])], {"name": "a", "children": [{}]}),
    (Renamed, [Renamed("a", "b")], {"first_name": "a"}),
    (Strict, [Strict(1)], {"a": 1, "b": 2}),
    (Changed | Shipped, [Changed(1), Shipped(NOON, "x")], {"type": "Sold"}),
    (Tagged | Numbered, [Tagged(0.5), Numbered(True)], {"kind": 8, "value": True}),
    (list[Box[int] | None], [[Box(1), None]], [{"content": "a"}]),
    (dict[str, Box[list[str]]], [{"a": Box(["b"])}], {"a": {"content": [1]}}),
    (Channels, [Channels(["a"])], {}),
    (Odd, [Odd("a", "b")], {"discriminator": "b"}),
    (Deep, [Deep({"a": [Place(1, 2), None]}, Colour.BLUE)], {"places": {"a": [{"x": 1}]}}),
    (Note | Place, [{"text": "a"}, Place(1, 2)], {"text": 5}),
    (Partial, [{}, {"a": 1, "b": ["c"]}], {"a": "1"}),
    (Kennel, [Kennel(pets=[Cat(kind="cat"), Dog(kind="dog")])], {"pets": [{"kind": "cow"}]}),
    (Json, [Json(None), Json({"a": Json([Json("b")])})], 1),
    (Outer, [Outer(item=Item(inner=1))], {"item": 1}),
    (Callback, [], {"number": "1"}),
    (Node | Payment, [Node(next=Node()), Payment(amount=1)], {"next": 5}),
    (Rating, [{"stars": 5, "words": ["a"]}], {"words": ["a"]}),
    (
        Order,
        [{"rating": {"stars": 1}, "state": "open", "at": None}],
        {"rating": {"stars": 1}, "state": "shut", "at": None},
    ),
]
"""Type, values of it, and JSON that is none of it and that TypeScript can tell, too."""
