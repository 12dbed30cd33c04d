from django.test import SimpleTestCase

import realtime
from realtime.errors import Error
from realtime.testing import RealtimeTestMixin

ROOM = {"room": "main", "seat": "A1", "name": "Fox"}


class SeatsTest(RealtimeTestMixin, SimpleTestCase):
    def sitting(self):
        return {entry.key: entry.data["name"] for entry in realtime.map("seats:main").items()}

    def test_page_has_the_seats(self):
        self.assertContains(self.client.get("/"), '<button value="C6">')

    def test_first_who_comes_sits(self):
        with self.realtime_client() as fox, self.realtime_client() as owl:
            self.assertTrue(fox.rpc("sit", ROOM))
            self.assertFalse(owl.rpc("sit", ROOM | {"name": "Owl"}))
            self.assertTrue(fox.rpc("sit", ROOM), "a seat of one's own is kept on")
            self.assertEqual(self.sitting(), {"A1": "Fox"})

    def test_only_who_sits_there_leaves_a_seat(self):
        with self.realtime_client() as fox, self.realtime_client() as owl:
            fox.rpc("sit", ROOM)
            owl.rpc("stand", ROOM)
            self.assertEqual(self.sitting(), {"A1": "Fox"})
            fox.rpc("stand", ROOM)
            self.assertEqual(self.sitting(), {})

    def test_others_see_who_sits(self):
        with self.realtime_client() as fox, self.realtime_client() as owl:
            owl.subscribe("seats:main")
            fox.rpc("sit", ROOM)
            self.assertEqual(owl.expect("seats:main").data["key"], "A1")

    def test_seats_and_names_are_ours(self):
        with self.realtime_client() as fox:
            for wrong in ({"seat": "Z9"}, {"room": "a:b"}, {"room": 5}, {"seat": ["A1"]}):
                with self.subTest(wrong), self.assertRaises(Error):
                    fox.rpc("sit", ROOM | wrong)
            self.assertRaises(Error, fox.rpc, "sit", "text")
            fox.rpc("sit", ROOM | {"name": "<b>"})
            self.assertEqual(self.sitting(), {"A1": "Visitor"})
