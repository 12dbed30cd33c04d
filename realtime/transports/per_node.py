"""One object for each node of a process: a process may begin a node, stop it and begin another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from realtime.node.node import Node

T = TypeVar("T")


class PerNode(Generic[T]):
    """Node → object, made when it is asked for. Those of ended nodes are dropped."""

    def __init__(self, make: Callable[[Node], T]) -> None:
        self._make = make
        self._objects: dict[Node, T] = {}

    def of(self, node: Node) -> T:
        """Return the object of a node."""
        if node not in self._objects:
            for ended in [other for other in self._objects if other.loop.is_closed()]:
                del self._objects[ended]
            self._objects[node] = self._make(node)
        return self._objects[node]
