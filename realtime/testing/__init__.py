"""For the tests of a site: what was published, and clients without a server.

    from realtime.testing import RealtimeTestMixin

    class ChatTest(RealtimeTestMixin, TestCase):
        def test_message_reaches_the_room(self):
            with self.realtime_client(self.alice) as alice:
                alice.subscribe("chat:lobby")
                self.client.post("/messages/", {"text": "hi"})
                alice.expect("chat:lobby", {"text": "hi"})
            self.assertPublished("chat:lobby", {"text": "hi"})

With pytest the fixtures of `realtime.testing.plugin` are there by themselves. All of it is in
docs/testing.md. Names are loaded at first use: pytest imports this package in every project.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from realtime.testing.clients import TestClient
    from realtime.testing.outbox import Outbox, Published, capture
    from realtime.testing.results import Received, Resumed, Subscribed
    from realtime.testing.services import TestService
    from realtime.testing.sockets import HandshakeRefused
    from realtime.testing.testcases import RealtimeTestMixin

__all__ = [
    "HandshakeRefused",
    "Outbox",
    "Published",
    "RealtimeTestMixin",
    "Received",
    "Resumed",
    "Subscribed",
    "TestClient",
    "TestService",
    "capture",
]

_MODULES = {
    "HandshakeRefused": "sockets",
    "Outbox": "outbox",
    "Published": "outbox",
    "RealtimeTestMixin": "testcases",
    "Received": "results",
    "Resumed": "results",
    "Subscribed": "results",
    "TestClient": "clients",
    "TestService": "services",
    "capture": "outbox",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
