"""The test kit for sites: captured publications, and clients without a server.

    from realtime.testing import RealtimeTestMixin

    class ChatTest(RealtimeTestMixin, TestCase):
        def test_message_reaches_the_room(self):
            with self.realtime_client(self.alice) as alice:
                alice.subscribe("chat:lobby")
                self.client.post("/messages/", {"text": "hi"})
                alice.expect("chat:lobby", {"text": "hi"})
            self.assertPublished("chat:lobby", {"text": "hi"})

With pytest, the fixtures of `realtime.testing.plugin` are registered automatically. See
docs/testing.md. Names are loaded at their first use: pytest imports this package in every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime import lazy_names

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
    **dict.fromkeys(("Outbox", "Published", "capture"), "realtime.testing.outbox"),
    **dict.fromkeys(("Received", "Resumed", "Subscribed"), "realtime.testing.results"),
    "HandshakeRefused": "realtime.testing.sockets",
    "RealtimeTestMixin": "realtime.testing.testcases",
    "TestClient": "realtime.testing.clients",
    "TestService": "realtime.testing.services",
}
"""Name → the module that has it."""

__getattr__ = lazy_names(__name__, _MODULES)
