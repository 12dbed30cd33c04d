"""`HttpAgent` of @ag-ui/client, unmodified: its `verifyEvents` looks at every event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.answers.strangers.conftest import Play
from tests.server import Server

Run = Callable[[str], Any]

REASONING = [
    "REASONING_START",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    "REASONING_END",
]


@pytest.fixture
def run(play: Play, site: Server, unique: str) -> Run:
    """Plays one of the plays of ag_ui.mjs. The client has found nothing wrong."""

    def run(name: str) -> Any:
        played = play("ag_ui.mjs", site.address, unique, name)
        assert played["failures"] == []
        assert played["types"][0] == "RUN_STARTED"
        return played

    return run


def kinds(played: Any) -> list[str]:
    """The types of the events, equal ones that follow each other once."""
    types = played["types"]
    return [kind for kind, before in zip(types, [None, *types], strict=False) if kind != before]


def test_run_is_whole(run: Run) -> None:
    played = run("run")
    assert played["text"] == "Hello world."
    text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert kinds(played) == ["RUN_STARTED", *text, "RUN_FINISHED"]
    assert played["last"]["outcome"] == {"type": "success"}


def test_run_resumed_within_a_tool_call_is_whole(run: Run) -> None:
    played = run("resume")
    call = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    step = ["STEP_STARTED", *call, "STEP_FINISHED"]
    assert kinds(played) == ["RUN_STARTED", *REASONING, *step, "RUN_FINISHED"]
    reasoning, call, result = played["messages"]
    assert reasoning["content"] == "They ask for the weather."
    assert call["toolCalls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Rome"}'}
    assert result["content"] == "blue"


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("stop_text", ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]),
        ("stop_tool", ["TOOL_CALL_ARGS", "TOOL_CALL_END", "STEP_FINISHED"]),
    ],
)
def test_stop_closes_what_is_open(run: Run, name: str, last: list[str]) -> None:
    played = run(name)
    assert kinds(played)[-len(last) - 1 :] == [*last, "RUN_FINISHED"]
    assert played["last"]["outcome"] == {"type": "cancelled"}


def test_stop_ends_the_run_that_the_producer_named(run: Run) -> None:
    last = run("stop_tool")["last"]
    assert (last["threadId"], last["runId"]) == ("own", "mine")


def test_text_after_another_event_is_a_message_of_its_own(run: Run) -> None:
    played = run("twice")
    assert [each["content"] for each in played["messages"][1:]] == ["One.", "Two."]


def test_failed_run_ends_in_an_error_without_its_reason(run: Run) -> None:
    played = run("fails")
    assert played["text"] == "Half "
    assert kinds(played)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert played["last"]["message"] == "The answer failed."
