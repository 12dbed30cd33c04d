"""Filters by tags: what they let through, which are refused, and an evaluator beside them."""

from __future__ import annotations

import gc
import random
import weakref
from decimal import Decimal, InvalidOperation

import pytest

from realtime.protocol.messages import FilterNode
from realtime.streams.tag_filters import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    MAX_NUMBER_LENGTH,
    InvalidFilter,
    tags_filter,
)

TAGS = {"team": "red", "score": "10", "empty": "", "name": "a\u00e9b"}


def leaf(cmp: str, key: str = "team", val: str = "", *vals: str) -> FilterNode:
    return FilterNode(key=key, cmp=cmp, val=val, vals=vals)


@pytest.mark.parametrize(
    ("node", "passes"),
    [
        (leaf("eq", "team", "red"), True),
        (leaf("eq", "team", "re"), False),
        (leaf("eq", "missing", "red"), False),
        (leaf("neq", "team", "blue"), True),
        (leaf("neq", "team", "red"), False),
        (leaf("neq", "missing", "red"), True),
        (leaf("in", "team", "", "blue", "red"), True),
        (leaf("in", "team", "", "blue"), False),
        (leaf("in", "missing", "", ""), False),
        (leaf("nin", "team", "", "blue"), True),
        (leaf("nin", "team", "", "red"), False),
        (leaf("nin", "missing", "", ""), True),
        (leaf("ex", "empty"), True),
        (leaf("ex", "missing"), False),
        (leaf("nex", "missing"), True),
        (leaf("nex", "empty"), False),
        (leaf("sw", "team", "re"), True),
        (leaf("sw", "team", "ed"), False),
        (leaf("sw", "missing", "r"), False),
        (leaf("ew", "team", "ed"), True),
        (leaf("ew", "team", "re"), False),
        (leaf("ct", "team", "e"), True),
        (leaf("ct", "team", "x"), False),
        (leaf("ct", "name", "\u00e9"), True),
        (leaf("gt", "score", "9"), True),
        (leaf("gt", "score", "10"), False),
        (leaf("gte", "score", "10.0"), True),
        (leaf("lt", "score", "10.5"), True),
        (leaf("lt", "score", "9"), False),
        (leaf("lte", "score", "+10"), True),
        (leaf("lte", "score", "-10"), False),
        (leaf("gt", "team", "1"), False),
        (leaf("lt", "empty", "1"), False),
        (leaf("lt", "missing", "1"), False),
        (leaf("lt", "score", "many"), False),
        (leaf("lt", "score", "1e9"), False),
        (leaf("lt", "score", "Infinity"), False),
        (leaf("lt", "score", "\u0661\u0662"), False),
        (leaf("lt", "score", " 11"), False),
        (leaf("lt", "score", "1" * MAX_NUMBER_LENGTH), True),
        (leaf("lt", "score", "1" * (MAX_NUMBER_LENGTH + 1)), False),
        (FilterNode("and", nodes=(leaf("ex"), leaf("ex", "score"))), True),
        (FilterNode("and", nodes=(leaf("ex"), leaf("ex", "missing"))), False),
        (FilterNode("or", nodes=(leaf("ex", "missing"), leaf("ex"))), True),
        (FilterNode("or", nodes=(leaf("ex", "missing"),)), False),
        (FilterNode("not", nodes=(leaf("ex", "missing"),)), True),
        (FilterNode("not", nodes=(leaf("ex"),)), False),
    ],
)
def test_passes(node: FilterNode, passes: bool) -> None:
    assert tags_filter(node).matches(TAGS) is passes


def test_a_publication_without_tags_has_none_of_them() -> None:
    assert tags_filter(leaf("nex")).matches(None)
    assert not tags_filter(leaf("ex")).matches(None)


def test_an_answer_from_memory_is_that_of_the_same_tags() -> None:
    red = tags_filter(leaf("eq", "team", "red"))
    assert [red.matches(tags) for tags in (TAGS, TAGS, {"team": "blue"}, None, TAGS)] == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_equal_filters_are_one_object_while_one_of_them_is_in_use() -> None:
    first = tags_filter(leaf("eq", "team", "red"))
    assert tags_filter(leaf("eq", "team", "red")) is first
    assert tags_filter(leaf("eq", "team", "blue")) is not first
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def nested(depth: int) -> FilterNode:
    node = leaf("ex")
    for _ in range(depth - 1):
        node = FilterNode("not", nodes=(node,))
    return node


@pytest.mark.parametrize(
    "node",
    [
        FilterNode(),
        leaf("like", "team", "red"),
        leaf("EQ", "team", "red"),
        leaf("eq"),
        leaf("eq", "", "red"),
        leaf("eq", "team", "red", "blue"),
        leaf("in", "team"),
        leaf("in", "team", "red"),
        leaf("in", "team", "red", "blue"),
        leaf("nin", "", "", "blue"),
        leaf("ex", "team", "red"),
        leaf("nex", "team", "", "red"),
        leaf("gt", "score"),
        FilterNode("and"),
        FilterNode("or"),
        FilterNode("not"),
        FilterNode("not", nodes=(leaf("ex"), leaf("ex"))),
        FilterNode("xor", nodes=(leaf("ex"),)),
        FilterNode("and", nodes=(leaf("ex"), FilterNode())),
        nested(MAX_DEPTH + 1),
        FilterNode("or", nodes=(leaf("ex"),) * MAX_NODES),
        leaf("eq", "team", "x" * MAX_BYTES),
        leaf("eq", "team", "\u00e9" * (MAX_BYTES // 2)),
        leaf("in", "team", "", *("x" * 100 for _ in range(100))),
    ],
    ids=lambda node: repr(node)[:60],
)
def test_malformed_or_too_large_filters_are_refused(node: FilterNode) -> None:
    with pytest.raises(InvalidFilter):
        tags_filter(node)


@pytest.mark.parametrize(
    "node",
    [
        nested(MAX_DEPTH),
        FilterNode("or", nodes=(leaf("ex"),) * (MAX_NODES - 1)),
        leaf("ex", ""),
        leaf("gt", "score", "no number"),
        leaf("in", "team", "", "", "red"),
    ],
    ids=lambda node: repr(node)[:60],
)
def test_filters_within_the_limits_are_taken(node: FilterNode) -> None:
    tags_filter(node).matches(TAGS)


# another evaluator, in the words of the rules


def naive(node: FilterNode, tags: dict[str, str]) -> bool:
    if node.op:
        results = [naive(below, tags) for below in node.nodes]
        return {"and": False not in results, "or": True in results, "not": not results[0]}[node.op]
    if node.key not in tags:
        return node.cmp in ("neq", "nin", "nex")
    tag = tags[node.key]
    match node.cmp:
        case "ex" | "nex":
            return node.cmp == "ex"
        case "eq" | "neq":
            return (tag == node.val) is (node.cmp == "eq")
        case "in" | "nin":
            return (tag in list(node.vals)) is (node.cmp == "in")
        case "sw":
            return tag[: len(node.val)] == node.val
        case "ew":
            return tag[-len(node.val) :] == node.val
        case "ct":
            return tag.find(node.val) >= 0
    try:
        difference = Decimal(tag) - Decimal(node.val)
    except InvalidOperation:
        return False
    return {
        "lt": difference < 0,
        "lte": difference <= 0,
        "gt": difference > 0,
        "gte": difference >= 0,
    }[node.cmp]


KEYS = ("a", "b", "c")
COMPARISONS = (
    *("eq", "neq", "in", "nin", "ex", "nex"),
    *("sw", "ew", "ct", "lt", "lte", "gt", "gte"),
)
VALUES = ("x", "xy", "yx", "10", "9", "-1", "9.50", "9.5", "z")


def any_node(pick: random.Random, depth: int) -> FilterNode:
    if depth and pick.random() < 0.6:
        op = pick.choice(("and", "or", "not"))
        number = 1 if op == "not" else pick.randint(1, 3)
        return FilterNode(op, nodes=tuple(any_node(pick, depth - 1) for _ in range(number)))
    key = pick.choice(KEYS)
    cmp = pick.choice(COMPARISONS)
    if cmp in ("ex", "nex"):
        return FilterNode(key=key, cmp=cmp)
    if cmp in ("in", "nin"):
        return FilterNode(key=key, cmp=cmp, vals=tuple(pick.choices(VALUES, k=2)))
    return FilterNode(key=key, cmp=cmp, val=pick.choice(VALUES))


def test_agrees_with_a_second_evaluator() -> None:
    pick = random.Random(14)
    outcomes = {True: 0, False: 0}
    for _ in range(2000):
        node = any_node(pick, 3)
        found = tags_filter(node)
        for _ in range(5):
            tags = {key: pick.choice(VALUES) for key in KEYS if pick.random() < 0.7}
            passes = naive(node, tags)
            assert found.matches(tags) is passes, (node, tags)
            outcomes[passes] += 1
    assert min(outcomes.values()) > 1000
