from django.test import TestCase

from realtime.testing import RealtimeTestMixin

from .models import Item


class TodoTest(RealtimeTestMixin, TestCase):
    def post(self, path, **fields):
        response = self.client.post(path, fields, follow=True)
        self.assertEqual(response.status_code, 200)
        return response

    def test_items_are_added_turned_and_removed(self):
        page = self.post("/add", title="<b>Milk</b>")
        self.assertContains(page, "&lt;b&gt;Milk&lt;/b&gt;")
        [item] = Item.objects.all()

        self.assertContains(self.post(f"/{item.pk}/turn"), 'class="done"')
        self.assertNotContains(self.post(f"/{item.pk}/turn"), 'class="done"')
        self.assertNotContains(self.post(f"/{item.pk}/remove"), "Milk")

    def test_pages_get_what_changes(self):
        with self.realtime_client() as page:
            page.subscribe("todo:all")
            self.post("/add", title="<b>Milk</b>")
            [item] = Item.objects.all()
            self.post(f"/{item.pk}/turn")
            self.post(f"/{item.pk}/remove")

            added, turned, removed = (page.expect("todo:all").data for _ in range(3))
        self.assertIn(f'data-key="{item.pk}"', added["html"])
        self.assertIn("&lt;b&gt;Milk", added["html"])
        self.assertIn('class="done"', turned["html"])
        self.assertEqual(
            (removed["swap"], removed["target"]), ("remove", f"[data-key='{item.pk}']")
        )

    def test_what_is_not_there_changes_nothing(self):
        self.post("/add", title="  ")
        self.post("/add", title="\x00")  # PostgreSQL keeps no such character
        self.post("/5/turn")

        self.assertFalse(Item.objects.exists())
        self.assertNotPublished("todo:all")
