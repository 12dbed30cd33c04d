from django.test import TestCase, TransactionTestCase

from realtime.answers import begin
from realtime.answers.models import Answer
from realtime.testing import RealtimeTestMixin

from . import model, views
from .models import Talk


class AskTest(RealtimeTestMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.talk = Talk.objects.create()
        pace, model.PACE = model.PACE, 0
        self.addCleanup(setattr, model, "PACE", pace)

    def work(self, prompt):
        row = begin(f"talk:{self.talk.pk}")
        views.work(row.pk, prompt)
        return row

    def test_story_is_saved_with_its_end(self):
        row = self.work("Tell me")
        self.assertAnswer(row, text="".join(f"{s} " for s in model.STORY))
        [message] = self.talk.messages.all()
        self.assertEqual((message.is_answer, message.status), (True, "complete"))
        self.assertContains(self.client.get(f"/{self.talk.pk}"), "piece by piece")

    def test_weather_is_looked_up(self):
        row = self.work("What is the weather?")
        kinds = [part["type"] for part in Answer.objects.get(pk=row.pk).parts]
        self.assertIn("tool-output-available", kinds)

    def test_who_has_the_address_may_read(self):
        with self.realtime_client(str(self.talk.pk)) as reader:
            reader.subscribe(f"talk:{self.talk.pk}")
        self.assertEqual(self.client.get("/").status_code, 302)
        self.assertEqual(self.client.post(f"/{self.talk.pk}/ask", {"text": " "}).status_code, 400)


class BusyTest(RealtimeTestMixin, TransactionTestCase):
    def test_second_request_is_refused_and_kept_by_none(self):
        talk = Talk.objects.create()
        begin(f"talk:{talk.pk}")
        response = self.client.post(f"/{talk.pk}/ask", {"text": "Hello?"})
        self.assertEqual(response.status_code, 409)
        self.assertFalse(talk.messages.exists())
