"""`useChat` of the AI SDK 6 and 7, unmodified, in React."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.answers.strangers.conftest import Play
from tests.server import Server

VERSIONS = {"6": ("@ai-sdk/react", "ai"), "7": ("ai-react-7", "ai-7")}
CLEAN = {"isAbort": False, "isDisconnect": False, "isError": False}

Chat = Callable[[str], Any]


@pytest.fixture(params=VERSIONS)
def chat(request: pytest.FixtureRequest, play: Play, site: Server, unique: str) -> Chat:
    """Plays one of the plays of use_chat.mjs."""
    return lambda name: play("use_chat.mjs", *VERSIONS[request.param], site.address, unique, name)


def text_of(page: Any) -> str:
    """The text of the answer that a page shows: it has one part, the last of all messages."""
    user, answer = page["messages"]
    assert (user["role"], answer["role"]) == ("user", "assistant")
    (part,) = answer["parts"]
    assert (part["type"], part["state"]) == ("text", "done")
    return str(part["text"])


def test_page_shows_the_answer_to_what_it_sent(chat: Chat) -> None:
    page = chat("send")
    assert text_of(page) == "Hello world."
    assert (page["status"], page["ends"], page["replies"]) == ("ready", [CLEAN], [200])


def test_reloaded_page_goes_on_with_the_whole_answer(chat: Chat) -> None:
    played = chat("reload")
    assert text_of(played["second"]) == "Hello world."
    assert (played["second"]["status"], played["second"]["ends"]) == ("ready", [CLEAN])
    ids = [played[page]["messages"][1]["id"] for page in ("first", "second")]
    assert ids[0] == ids[1]


def test_page_finds_nothing_to_resume_after_the_end(chat: Chat) -> None:
    played = chat("finished")
    assert played["second"]["replies"] == [204]
    assert (played["second"]["messages"], played["second"]["ends"]) == (played["first"], [])


def test_closing_the_stream_stops_nothing_and_the_button_stops(chat: Chat) -> None:
    played = chat("stop")
    assert played["first"]["ends"] == [CLEAN | {"isAbort": True}]
    assert played["reply"] == {"status": "stopped"}
    assert text_of(played["second"]) == "Hello "
    assert played["second"]["status"] == "ready"
    chunks = [json.loads(line.partition(": ")[2]) for line in played["lines"][-4:] if "{" in line]
    assert chunks[-1] == {"type": "abort"}
    assert played["lines"][-1] == "data: [DONE]"


def test_tool_call_and_reasoning_survive_a_reload_within(chat: Chat) -> None:
    played = chat("tools")
    answer = played["second"]["messages"][1]
    step, reasoning, tool = answer["parts"]
    assert step == {"type": "step-start"}
    assert (reasoning["text"], reasoning["state"]) == ("They ask for the weather.", "done")
    assert (tool["type"], tool["state"]) == ("tool-weather", "output-available")
    assert (tool["input"], tool["output"]) == ({"city": "Rome"}, {"sky": "blue"})
    assert played["second"]["ends"] == [CLEAN | {"finishReason": "tool-calls"}]
    assert answer["id"] == played["first"]


def test_text_after_another_chunk_is_a_part_of_its_own(chat: Chat) -> None:
    parts = chat("twice")["messages"][1]["parts"]
    assert [each.get("text", each.get("data")) for each in parts] == ["One.", "glad", "Two."]


def test_failed_answer_is_an_error_with_its_text_and_without_its_reason(chat: Chat) -> None:
    page = chat("fails")
    assert text_of(page) == "Half "
    assert (page["status"], page["error"]) == ("error", "The answer failed.")
    assert page["ends"] == [CLEAN | {"isError": True}]
