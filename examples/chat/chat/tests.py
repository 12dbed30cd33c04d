from django.contrib.auth.models import User
from django.test import TestCase

from realtime.errors import PermissionDenied
from realtime.testing import RealtimeTestMixin

from .models import Message


class ChatTest(RealtimeTestMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.ada = User.objects.create_user("Ada")
        self.ben = User.objects.create_user("Ben")
        self.client.force_login(self.ada)

    def say(self, text, room="lobby"):
        return self.client.post(f"/{room}/", {"text": text})

    def test_message_reaches_those_in_the_room(self):
        with self.realtime_client(self.ben) as ben:
            ben.subscribe("chat:lobby")
            self.say(" h\x00i ")  # PostgreSQL keeps no such character

            [message] = Message.objects.all()
            said = {"id": message.pk, "user": str(self.ada.pk), "name": "Ada", "text": "hi"}
            ben.expect("chat:lobby", said)

    def test_message_is_there_after_a_reload(self):
        self.say("<b>hi</b>")

        self.assertContains(self.client.get("/lobby/"), "&lt;b&gt;hi&lt;/b&gt;")
        self.assertNotContains(self.client.get("/garden/"), "hi&lt;")

    def test_nothing_is_no_message(self):
        self.say("  ")
        self.say("\x00")

        self.assertNotPublished("chat:lobby")
        self.assertFalse(Message.objects.exists())

    def test_rooms_are_those_that_exist(self):
        self.assertEqual(self.say("hi", room="attic").status_code, 404)
        for channel in ("chat:attic", "chat:lobby:", "typing:attic", "typing:lobby:attic"):
            with self.realtime_client(self.ben) as ben, self.subTest(channel):
                self.assertRaises(PermissionDenied, ben.subscribe, channel)

    def test_others_see_who_writes_and_not_what(self):
        ada_client = self.realtime_client(self.ada, info={"name": "Ada"})
        with ada_client as ada, self.realtime_client(self.ben) as ben:
            ada.subscribe("typing:lobby")
            ben.subscribe("typing:lobby")
            ada.publish("typing:lobby", {"text": "I hereby resi"})

            publication = ben.expect("typing:lobby", {})
            self.assertEqual(publication.info["conn_info"], {"name": "Ada"})

    def test_room_is_for_those_who_are_logged_in(self):
        self.client.logout()

        self.assertRedirects(self.client.get("/lobby/"), "/enter?next=/lobby/")

    def test_entering_is_one_click(self):
        self.client.logout()
        self.client.post("/enter", {"name": "Chen"})

        self.assertContains(self.client.get("/lobby/"), "Leave, Chen")

    def test_strangers_cannot_enter(self):
        self.client.logout()
        self.client.post("/enter", {"name": "root"})

        self.assertEqual(self.client.get("/lobby/").status_code, 302)
