"""pydantic-ai's adapters as producers: on the loop of the server, in a thread, and in Celery."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.server import TIMEOUT, Server

MESSAGES = {
    "ui": lambda text: [{"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}],
    "ag-ui": lambda text: [{"id": "u", "role": "user", "content": text}],
}
NOTHING: dict[str, Any] = {"tools": [], "context": [], "state": None, "forwardedProps": None}

ENDS = {
    "ui": {"complete": "finish", "stopped": "abort", "failed": "error"},
    "ag-ui": {"complete": "RUN_FINISHED", "stopped": "RUN_FINISHED", "failed": "RUN_ERROR"},
}
TEXT = {
    "ui": ["text-start", "text-end"],
    "ag-ui": ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END"],
}
ALL_ENDS = {"finish", "abort", "error", "done", "RUN_FINISHED", "RUN_ERROR"}

pytestmark = [
    pytest.mark.parametrize("where", ["loop", "thread", "celery"]),
    pytest.mark.parametrize("form", ["ui", "ag-ui"]),
]


class Asking:
    """A client that asks an agent."""

    def __init__(self, client: httpx.AsyncClient, where: str, form: str, chat: str) -> None:
        self._client, self._where, self._form, self._chat = client, where, form, chat
        self.chunks: list[Any] = []

    async def ask(self, text: str, *, stops: bool = False) -> dict[str, Any]:
        """Read the answer; stop it once its text has begun. Return what the row has of it."""
        body = NOTHING | {"trigger": "submit-message", "messages": MESSAGES[self._form](text)}
        body |= {"id": self._chat} if self._form == "ui" else {"threadId": self._chat, "runId": "r"}
        address = f"/agents/{self._where}/{self._form}"
        async with self._client.stream("POST", address, json=body) as response:
            assert response.status_code == 200
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    self.chunks.append(json.loads(line.removeprefix("data: ")))
                    if stops and "Hello " in line:
                        await self._client.post(f"/stop/{self._chat}")
        async with asyncio.timeout(TIMEOUT):
            while not (shown := await self.row())["over"]:
                await asyncio.sleep(0.02)
        self.check_end(shown["status"])
        return shown

    async def row(self) -> dict[str, Any]:
        response = await self._client.get(f"/agents/{self._chat}")
        shown: dict[str, Any] = response.json()
        return shown

    def check_end(self, status: str) -> None:
        """Check that the answer has one end, which says the same as its row."""
        kinds = [each["type"] for each in self.chunks]
        assert [kind for kind in kinds if kind in ALL_ENDS] == [ENDS[self._form][status]]
        assert kinds[-1] in ALL_ENDS
        blocks = [kind for kind in kinds if kind in TEXT[self._form]]
        assert blocks == TEXT[self._form] * (len(blocks) // 2)

    def values(self, name: str) -> list[Any]:
        return [each[name] for each in self.chunks if name in each]


@pytest.fixture
async def asking(
    request: pytest.FixtureRequest, where: str, form: str, unique: str
) -> AsyncIterator[Asking]:
    """A client that asks an agent."""
    site: Server = request.getfixturevalue("site_with_celery" if where == "celery" else "site")
    async with httpx.AsyncClient(base_url=site.address, timeout=30, trust_env=False) as client:
        yield Asking(client, where, form, unique)


async def test_text_is_whole(asking: Asking) -> None:
    shown = await asking.ask("text")
    assert "".join(asking.values("delta")) == "Hello world."
    assert (shown["status"], shown["text"]) == ("complete", "Hello world.")


async def test_tool_is_called_and_its_result_used(asking: Asking, form: str) -> None:
    shown = await asking.ask("tools")
    assert shown["text"] == "The sky is blue."
    assert asking.values("toolName" if form == "ui" else "toolCallName")[0] == "weather"
    assert asking.values("output" if form == "ui" else "content") == ["blue"]


async def test_error_of_the_adapter_is_the_end_and_the_row_has_it(asking: Asking) -> None:
    shown = await asking.ask("fails")
    assert (shown["status"], shown["text"]) == ("failed", "Half ")
    assert "no tokens left" in shown["error"]


async def test_stop_cancels_a_run_whose_model_is_silent(asking: Asking, form: str) -> None:
    shown = await asking.ask("waits", stops=True)
    assert (shown["status"], shown["text"]) == ("stopped", "Hello ")
    if form == "ag-ui":
        assert asking.chunks[-1]["outcome"] == {"type": "cancelled"}
        assert asking.chunks[-1]["runId"] == asking.chunks[0]["runId"] == "r"
    else:
        assert re.fullmatch("[0-9a-f-]{36}", asking.chunks[0]["messageId"])
