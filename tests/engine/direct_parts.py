"""What the tests of direct messages share."""

from __future__ import annotations

from realtime.node.node import Node
from tests.engine.layered_nodes import LAYERS, OWN, SHARDS

KINDS = [OWN, SHARDS, *(name for name in LAYERS if "drops" not in name)]
"""Layers that drop may drop direct messages: nothing is promised for those."""

TIMEOUT = 20.0
SHORT_TIMEOUT = 0.2


def read(node: Node, subject: str = "s") -> list[bytes]:
    """The bodies of the messages about a subject, as they arrive."""
    bodies: list[bytes] = []
    node.direct.handle(subject, lambda sender, body: bodies.append(body))
    return bodies


async def double(body: bytes) -> bytes:
    return b"[" + body + b"," + body + b"]"


def answer_double(node: Node) -> None:
    """Answer questions with the question twice."""
    node.direct.handle("double", lambda sender, body: double(body))
