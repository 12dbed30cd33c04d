"""Filters by tags: which publications a subscriber gets. Pure.

A filter is a tree. A leaf compares one tag with a value, and a node with an operator combines the
nodes below it. Publications that do not match are not delivered and not recovered; the position of
the subscriber moves past them.

A filter comes from a client, so it has limits, and each filter is evaluated once per publication,
for however many subscribers: equal filters are one object.

docs/protocol.md, 16.9.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias
from weakref import WeakValueDictionary

from realtime.protocol.messages import FilterNode

MAX_DEPTH = 16
MAX_NODES = 64
MAX_BYTES = 8192
"""Of all texts in a filter."""
MAX_NUMBER_LENGTH = 200
"""Characters of a number; a longer text is not one."""

Tags: TypeAlias = Mapping[str, str]
Match: TypeAlias = Callable[[Tags], bool]

_NO_TAGS: Tags = {}
_is_number = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?").fullmatch

_ONE_VALUE: Mapping[str, Callable[[str, str], bool]] = {
    "eq": operator.eq,
    "sw": str.startswith,
    "ew": str.endswith,
    "ct": operator.contains,
}
"""Comparisons of a tag, which must be there, with `val`."""

_NUMBERS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


class InvalidFilter(ValueError):
    """A filter that is malformed or exceeds a limit."""


class TagsFilter:
    """A filter that was checked. See `tags_filter`."""

    __slots__ = ("__weakref__", "_last", "_last_tags", "_match", "node")

    def __init__(self, node: FilterNode) -> None:
        """Raises InvalidFilter."""
        self.node = node
        self._match = _compile(node)
        self._last_tags: Tags | None = None
        self._last = False

    def matches(self, tags: Tags | None) -> bool:
        """Return whether a publication with these tags passes.

        Asked again for the same object, it answers from memory.
        """
        if tags is None:
            tags = _NO_TAGS
        if tags is not self._last_tags:
            self._last = self._evaluate(tags)
            self._last_tags = tags
        return self._last

    def _evaluate(self, tags: Tags) -> bool:
        return self._match(tags)


_in_use: WeakValueDictionary[FilterNode, TagsFilter] = WeakValueDictionary()


def tags_filter(node: FilterNode) -> TagsFilter:
    """Return the filter that a client asks for; equal ones are the same object.

    Raises:
        InvalidFilter: it is malformed, or exceeds a limit.
    """
    found = _in_use.get(node)
    if found is None:
        _check_size(node)
        found = _in_use[node] = TagsFilter(node)
    return found


def _check_size(root: FilterNode) -> None:
    size = 0
    for nodes, (node, depth) in enumerate(_walk(root, 1), 1):
        texts = (node.op, node.key, node.cmp, node.val, *node.vals)
        size += sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        if depth > MAX_DEPTH or nodes > MAX_NODES or size > MAX_BYTES:
            raise InvalidFilter(
                f"more than {MAX_NODES} nodes, {MAX_DEPTH} levels or {MAX_BYTES} bytes"
            )


def _walk(node: FilterNode, depth: int) -> Iterator[tuple[FilterNode, int]]:
    yield node, depth
    for below in node.nodes:
        yield from _walk(below, depth + 1)


def _compile(node: FilterNode) -> Match:
    """Return a function for a node and all nodes below it.

    Raises:
        InvalidFilter: the node is malformed.
    """
    if not node.op:
        return _compile_leaf(node)
    if node.op not in ("and", "or", "not"):
        raise InvalidFilter("unknown operator")
    if not node.nodes or (node.op == "not" and len(node.nodes) > 1):
        raise InvalidFilter(f"{node.op} over {len(node.nodes)} nodes")
    parts = tuple(map(_compile, node.nodes))
    if node.op == "not":
        part = parts[0]
        return lambda tags: not part(tags)
    if node.op == "and":
        return lambda tags: all(part(tags) for part in parts)
    return lambda tags: any(part(tags) for part in parts)


def _compile_leaf(node: FilterNode) -> Match:
    key, cmp, val = node.key, node.cmp, node.val
    if cmp in ("ex", "nex"):
        _require(not val and not node.vals, f"{cmp} with a value")
        if cmp == "ex":
            return lambda tags: key in tags
        return lambda tags: key not in tags
    _require(bool(key), "a comparison without key")
    if cmp in ("in", "nin"):
        _require(bool(node.vals) and not val, f"{cmp} needs vals, and no val")
        values = frozenset(node.vals)
        if cmp == "in":
            return lambda tags: key in tags and tags[key] in values
        return lambda tags: key not in tags or tags[key] not in values
    _require(bool(val) and not node.vals, "a comparison needs val, and no vals")
    if cmp == "neq":
        return lambda tags: tags.get(key) != val
    if cmp in _ONE_VALUE:
        compare = _ONE_VALUE[cmp]
        return lambda tags: key in tags and compare(tags[key], val)
    _require(cmp in _NUMBERS, "unknown comparison")
    return _compile_number(key, _NUMBERS[cmp], _number(val))


def _compile_number(
    key: str, compare: Callable[[Decimal, Decimal], bool], limit: Decimal | None
) -> Match:
    if limit is None:
        return lambda tags: False  # as a tag that is not a number
    value = limit

    def match(tags: Tags) -> bool:
        number = _number(tags.get(key, ""))
        return number is not None and compare(number, value)

    return match


def _number(text: str) -> Decimal | None:
    """Return a decimal number; None for any other text."""
    if len(text) > MAX_NUMBER_LENGTH or _is_number(text) is None:
        return None
    return Decimal(text)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvalidFilter(what)
