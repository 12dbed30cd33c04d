"""What the mixin for unittest gives beside the examples of the documentation."""

from __future__ import annotations

import pytest
from django.test import SimpleTestCase

from realtime.config import sources
from realtime.errors import NotAvailable
from realtime.testing import RealtimeTestMixin


class SettingsTest(RealtimeTestMixin, SimpleTestCase):
    def test_options_hold_until_the_test_ends(self) -> None:
        self.realtime_settings(client_anonymous=True, anonymous=True)
        self.realtime_settings(presence=True)
        with self.realtime_client() as visitor:
            visitor.subscribe("news")
            assert len(visitor.presence("news")) == 1

    def test_options_of_another_test_do_not(self) -> None:
        assert not sources.current().channel.presence
        with self.realtime_client("17") as reader:
            reader.subscribe("news")
            with pytest.raises(NotAvailable):
                reader.presence("news")
