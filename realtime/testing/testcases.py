"""The mixin for test cases of unittest and Django."""

from __future__ import annotations

import unittest
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

from django.apps import apps
from django.conf import settings
from django.test import override_settings

from realtime.testing.clients import TestClient
from realtime.testing.outbox import Outbox, capture, matching
from realtime.testing.services import TestService

if TYPE_CHECKING:
    _Case = unittest.TestCase
else:
    _Case = object


class RealtimeTestMixin(_Case):
    """An outbox and a service for each test: `class ChatTest(RealtimeTestMixin, TestCase)`.

    Name it before Django's class. A `setUp` or `setUpClass` of your own must call `super()`.
    Publications of `setUpTestData` are dropped.
    """

    realtime_outbox: Outbox
    """Publications of the test, in all its threads."""
    realtime_service: TestService

    @classmethod
    def setUpClass(cls) -> None:
        captured = capture()
        captured.__enter__()
        cls.addClassCleanup(captured.__exit__)
        super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        captured = capture()
        self.realtime_outbox = captured.__enter__()
        self.addCleanup(captured.__exit__)
        self.realtime_service = TestService()
        self.realtime_service.start()
        self.addCleanup(self.realtime_service.stop)

    def realtime_client(self, user: Any = None, **options: Any) -> TestClient:
        """Return a client that is not connected yet; see `TestService.client`."""
        return self.realtime_service.client(user, **options)

    def realtime_settings(self, **options: object) -> None:
        """Set options of the service until the test ends: `self.realtime_settings(presence=True)`.

        The service of the test starts anew, which closes its clients.
        """
        merged = {**getattr(settings, "REALTIME", {}), **options}
        changed = override_settings(REALTIME=merged)
        changed.enable()
        self.addCleanup(changed.disable)

    def assertPublished(  # noqa: N802, as unittest spells them
        self, channel: str, data: object = ANY, *, count: int | None = None
    ) -> None:
        """Fail unless data were published into a channel `count` times, or at least once."""
        found = len(matching(self.realtime_outbox, channel, data))
        if found if count is None else found == count:
            return
        what = "anything" if data is ANY else repr(data)
        wanted = "at least once" if count is None else f"{count} times"
        self.fail(
            f"Wanted in {channel!r}: {what}, {wanted}; found {found} times."
            f" Published: {self.realtime_outbox!r}."
        )

    def assertMap(  # noqa: N802, too
        self, channel: str, entries: Mapping[str, object]
    ) -> None:
        """Fail unless the changes of a map leave these data: `{"seat1": {"user": 7}}`."""
        if (found := self.realtime_outbox.map(channel)) != entries:
            self.fail(f"Wanted in {channel!r}: {entries!r}; found: {found!r}.")

    def assertAnswer(  # noqa: N802, too
        self,
        answer: Any,
        *,
        text: str | None = None,
        parts: Sequence[Any] | None = None,
        status: str = "complete",
    ) -> None:
        """Fail unless an answer has ended with this status, and this text and these parts.

        Args:
            answer: its row or its ID.
            text: None: any.
            parts: None: any.
        """
        model: Any = apps.get_app_config("realtime_answers").get_model("Answer")
        row = model.objects.get(pk=getattr(answer, "pk", answer))
        found, wanted = [row.status, row.text, row.parts], [status, text, parts]
        if any(each not in (None, value) for each, value in zip(wanted, found, strict=True)):
            self.fail(f"Wanted status, text and parts: {wanted!r}; found: {found!r}. {row.error}")

    def assertNotPublished(self, channel: str, data: object = ANY) -> None:  # noqa: N802, too
        """Fail if data were published into a channel."""
        self.assertPublished(channel, data, count=0)
