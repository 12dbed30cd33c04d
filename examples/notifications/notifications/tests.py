from django.contrib.auth.models import User
from django.test import TestCase

from realtime.errors import PermissionDenied
from realtime.testing import RealtimeTestMixin

from . import inbox
from .models import Notification


class NotificationsTest(RealtimeTestMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.ada = User.objects.create_user("Ada")
        self.ben = User.objects.create_user("Ben")
        self.client.force_login(self.ada)

    def notify(self, *texts):
        for text in texts:
            inbox.notify(self.ada, text)
        return list(self.ada.notifications.values_list("pk", flat=True))

    def test_all_pages_of_a_user_learn_of_an_order(self):
        channel = inbox.channel_of(self.ben)
        with self.realtime_client(self.ben) as phone, self.realtime_client(self.ben) as laptop:
            phone.subscribe(channel)
            laptop.subscribe(channel)
            self.client.post("/order", {"to": "Ben"})

            [row] = self.ben.notifications.all()
            for device in (phone, laptop):
                device.expect(channel, {"new": row.pk, "text": row.text})

    def test_order_that_fails_notifies_no_one(self):
        self.client.post("/order", {"to": "Ben", "fail": "on"})

        self.assertNotPublished(inbox.channel_of(self.ben))
        self.assertFalse(Notification.objects.exists())

    def test_inbox_is_for_its_user(self):
        with self.realtime_client(self.ben) as ben, self.assertRaises(PermissionDenied):
            ben.subscribe(inbox.channel_of(self.ada))

    def test_read_mark_travels(self):
        one, other = self.notify("one", "other")
        self.realtime_outbox.clear()

        self.client.post(f"/read/{one}")

        self.assertPublished(inbox.channel_of(self.ada), {"read": [one]}, count=1)
        self.assertEqual(self.ada.notifications.get(read=False).pk, other)

    def test_all_are_read_at_once(self):
        ids = self.notify("one", "other")
        self.realtime_outbox.clear()

        self.client.post("/read")
        self.client.post("/read")

        self.assertPublished(inbox.channel_of(self.ada), {"read": ids}, count=1)

    def test_notification_of_another_user_stays_unread(self):
        [row] = self.notify("one")
        self.client.force_login(self.ben)

        self.client.post(f"/read/{row}")

        self.assertTrue(self.ada.notifications.filter(read=False).exists())

    def test_page_has_every_unread_notification(self):
        self.notify(*(f"number {number}" for number in range(60)))

        self.assertContains(self.client.get("/"), 'class="unread"', count=61)  # one is a template

    def test_text_is_text(self):
        self.notify("<b>hi</b>")

        self.assertContains(self.client.get("/"), "&lt;b&gt;hi&lt;/b&gt;")

    def test_entering_is_one_click(self):
        self.client.logout()
        self.client.post("/enter", {"name": "Chen"})

        self.assertContains(self.client.get("/"), "Leave, Chen")
        self.assertEqual(self.client.post("/enter", {"name": "root"}).status_code, 404)
