from django.test import SimpleTestCase

from realtime.errors import Error
from realtime.testing import RealtimeTestMixin

BOARD = "board:main"


class CursorTest(RealtimeTestMixin, SimpleTestCase):
    def visitor(self, name):
        return self.realtime_client(data={"name": name})

    def test_page_gives_a_name(self):
        self.assertContains(self.client.get("/"), f'data-channel="{BOARD}"')

    def test_others_see_where_a_cursor_is_and_whose_it_is(self):
        with self.visitor("Fox") as fox, self.visitor("Owl") as owl:
            owl.subscribe(BOARD)
            fox.subscribe(BOARD)
            self.assertEqual(owl.expect_join(BOARD)["conn_info"], {"name": "Owl"})
            self.assertEqual(owl.expect_join(BOARD)["conn_info"], {"name": "Fox"})
            fox.publish(BOARD, {"x": 0.25, "y": 1, "more": "text"})

            publication = owl.expect(BOARD, {"x": 0.25, "y": 1, "click": False})
            self.assertEqual(publication.info["conn_info"], {"name": "Fox"})

    def test_others_see_who_closes_the_page(self):
        with self.visitor("Owl") as owl:
            owl.subscribe(BOARD)
            owl.expect_join(BOARD)
            with self.visitor("Fox") as fox:
                fox.subscribe(BOARD)
                client = owl.expect_join(BOARD)["client"]

            self.assertEqual(owl.expect_leave(BOARD)["client"], client)

    def test_only_places_are_published(self):
        with self.visitor("Fox") as fox:
            fox.subscribe(BOARD)
            places = ((2, 0), (0, -0.1), ("0", 0), (True, 0), (None, 0), (0, [0]), (10**400, 0))
            for data in (None, "text", [], {}, *({"x": x, "y": y} for x, y in places)):
                with self.subTest(data), self.assertRaises(Error) as refused:
                    fox.publish(BOARD, data)
                self.assertEqual(refused.exception.code, 1000)

    def test_only_places_are_published_on_boards_that_have_no_page(self):
        for board in ("board:a:b", "board:", "board:a/b"):
            with self.visitor("Fox") as fox, self.subTest(board):
                fox.subscribe(board)
                self.assertRaises(Error, fox.publish, board, {"text": "anything"})

    def test_names_are_ours(self):
        with self.visitor("<b>") as visitor:
            visitor.subscribe(BOARD)
            [info] = visitor.presence(BOARD).values()

            self.assertEqual(info["conn_info"], {"name": "Visitor"})
