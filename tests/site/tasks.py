"""The worker of the test site: Celery, over the Redis that TEST_BROKER names."""

from __future__ import annotations

import os

from celery import Celery

BROKER = os.environ.get("TEST_BROKER", "")

app = Celery("tests.site.tasks", broker=BROKER, backend=BROKER)


@app.task(name="work")
def work(answer_id: str, form: str, body: str) -> None:
    """Write the answer of an agent."""
    from tests.site import agents

    agents.work(answer_id, form, body.encode())
