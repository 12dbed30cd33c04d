from django.core.management import call_command
from django.test import TestCase

from realtime.testing import RealtimeTestMixin

from . import shop
from .models import Second


class DashboardTest(RealtimeTestMixin, TestCase):
    def test_page_has_the_numbers(self):
        Second.objects.create(orders=3, revenue=70)

        response = self.client.get("/")

        self.assertContains(response, '<dd id="revenue">€ 70</dd>')
        self.assertContains(response, '"totals": {"orders": 3, "revenue": 70}')

    def test_page_without_sales_has_zeros(self):
        self.assertContains(self.client.get("/"), '"totals": {"orders": 0, "revenue": 0}')

    def test_screen_gets_each_second_with_sums(self):
        with self.realtime_client() as screen:
            screen.subscribe("shop:sales")
            shop.sell(2, pause=0)

            for second in Second.objects.order_by("pk"):
                before = Second.objects.filter(pk__lte=second.pk)
                totals = {
                    "orders": sum(each.orders for each in before),
                    "revenue": sum(each.revenue for each in before),
                }
                screen.expect("shop:sales", {"second": second.as_json(), "totals": totals})

    def test_screen_that_was_cut_gets_what_it_missed(self):
        with self.realtime_client() as screen:
            screen.subscribe("shop:sales")
            screen.drop()
            shop.sell(3, pause=0)

            resumed = screen.resume()

            self.assertTrue(resumed.recovered)
            self.assertEqual(len(resumed.missed), 3)

    def test_state_says_which_publications_it_has(self):
        shop.sell_once()

        response = self.client.get("/state")

        self.assertEqual(response.json(), shop.state())
        self.assertIn('"channel":"shop:sales"', response.headers["Realtime-Position"])

    def test_command_sells(self):
        call_command("sell", 1)

        self.assertPublished("shop:sales", count=1)

    def test_chart_has_the_last_minute(self):
        Second.objects.bulk_create(Second(orders=1, revenue=1) for _ in range(70))

        state = shop.state()

        self.assertEqual(len(state["seconds"]), 60)
        self.assertEqual(state["totals"], {"orders": 70, "revenue": 70})
        self.assertEqual(state["seconds"][-1]["id"], Second.objects.latest("pk").pk)
