"""Events of OpenAI's and Anthropic's SDKs, by their documented shapes, in the form "events"."""

from __future__ import annotations

import uuid
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import realtime
from realtime.answers import answer, begin

pytestmark = [pytest.mark.usefixtures("over_redis"), pytest.mark.django_db(transaction=True)]


class TextDelta(BaseModel):
    """OpenAI: an event of the Responses API."""

    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    item_id: str = "msg_1"
    output_index: int = 0
    content_index: int = 0
    delta: str
    logprobs: list[Any] = []
    sequence_number: int


class Text(BaseModel):
    type: Literal["text_delta"] = "text_delta"
    text: str


class BlockDelta(BaseModel):
    """Anthropic: an event of the Messages API."""

    type: Literal["content_block_delta"] = "content_block_delta"
    index: int = 0
    delta: Text


EVENTS: dict[str, list[BaseModel]] = {
    "openai": [TextDelta(delta=text, sequence_number=n) for n, text in enumerate(("He", "llo"))],
    "anthropic": [BlockDelta(delta=Text(text=text)) for text in ("He", "llo")],
}


@pytest.mark.parametrize("sdk", EVENTS)
def test_each_event_stays_one_event(sdk: str) -> None:
    row = begin(f"chat:{uuid.uuid4().hex}", form="events")
    with answer(id=row.pk) as a:
        for event in EVENTS[sdk]:
            a.send(event)
        with pytest.raises(TypeError):
            a.write("text")

    row.refresh_from_db()
    sent = [event.model_dump() for event in EVENTS[sdk]]
    assert (row.status, row.parts) == ("complete", sent)
    *publications, end = [each["data"] for each in realtime.history(row.own_channel)]
    assert [event for each in publications for event in each["events"]] == sent
    assert end == {"end": "complete"}
