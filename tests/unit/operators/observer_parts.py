"""What the tests of observers share."""

from __future__ import annotations

from realtime.node.node import Node
from realtime.operators.observer import NodeObserver


def observer_of(node: Node) -> NodeObserver:
    assert isinstance(node.observer, NodeObserver)
    return node.observer
