"""Answers over HTTP, as the response of a view and for those who join.

`ANSWER_STREAMS=1000` opens as many in the test of what they hold.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.answers.helpers import begun, browsing, text_of
from tests.open_files import open_files
from tests.server import Server, wait_until

STREAMS = int(os.environ.get("ANSWER_STREAMS", "50"))


def chunks(body: str) -> list[Any]:
    found = re.findall(r"^data: (.*)$", body, re.M)
    assert found[-1] == "[DONE]"
    return [json.loads(each) for each in found[:-1]]


def text_in(body: str) -> str:
    return "".join(each.get("delta", "") for each in chunks(body))


async def test_view_responds_with_the_whole_answer(site: Server) -> None:
    async with browsing(site) as client:
        response = await client.post("/chat/1", params={"count": 40})

    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert text_in(response.text) == text_of(40)
    kinds = [each["type"] for each in chunks(response.text)]
    assert kinds[:2] == ["start", "text-start"]
    assert kinds[-2:] == ["text-end", "finish"]


async def test_reader_who_goes_stops_nothing(site: Server) -> None:
    async with browsing(site) as client:
        async with client.stream("POST", "/chat/2", params={"count": 40}) as response:
            async for line in response.aiter_lines():
                if "text-delta" in line:
                    break
        again = await client.get("/chat/2/stream")
        assert text_in(again.text) == text_of(40)


async def test_nothing_to_resume_is_204(site: Server) -> None:
    async with browsing(site) as client:
        assert (await client.get("/chat/none/stream")).status_code == 204


@pytest.mark.parametrize("when", ["running", "ended"])
async def test_joiner_gets_the_text_from_its_beginning(site: Server, when: str) -> None:
    async with browsing(site) as client:
        count = 100 if when == "running" else 5
        answer_id = await begun(client, count)
        if when == "ended":
            await client.get(f"/answers/{answer_id}/events")
        else:
            await asyncio.to_thread(_wait_for_some, site, answer_id)
        response = await client.get(f"/answers/{answer_id}/events")
        assert text_in(response.text) == text_of(count)


def _wait_for_some(site: Server, answer_id: str) -> None:
    def has_some() -> bool:
        reply = site.api("history", channel=f"answer:{answer_id}")
        return bool(reply["result"]["publications"])

    wait_until(has_some)


async def test_reader_who_comes_back_goes_on_where_it_was(site: Server) -> None:
    async with browsing(site) as client:
        answer_id = await begun(client, 100, form="text")
        address, parts, last, breaks = f"/answers/{answer_id}/events", [], "", 0
        while last != "end":
            async with client.stream("GET", address, headers={"Last-Event-ID": last}) as response:
                event, number = [], 0
                async for line in response.aiter_lines():
                    if line.startswith("id: "):
                        last = line.removeprefix("id: ")
                    elif line.startswith("data: "):
                        event.append(line.removeprefix("data: "))
                    elif not line and event:
                        parts.append("\n".join(event))
                        event, number = [], number + 1
                        if number == 2:
                            breaks += 1
                            break
        assert breaks > 5
        assert "".join(parts) == text_of(100) + "complete"
        over = await client.get(address, headers={"Last-Event-ID": "end"})
        assert over.status_code == 204


async def test_html_is_escaped_and_ends_with_an_event(site: Server) -> None:
    async with browsing(site) as client:
        answer_id = await begun(client, 8)
        response = await client.get(f"/answers/{answer_id}/events", params={"format": "html"})
    assert "&lt;three&gt;" in response.text
    assert "<three>" not in response.text
    assert response.text.endswith("id: end\nevent: end\ndata: complete\n\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/answers/{open}/stop", 403),
        ("POST", "/answers/{closed}/stop", 403),
        ("GET", "/answers/{closed}/events", 403),
        ("GET", "/answers/{nobodys}/events", 404),
        ("POST", "/answers/{nobodys}/stop", 404),
        ("GET", "/answers/{open}/stop", 405),
        ("POST", "/answers/{open}/events", 405),
    ],
)
async def test_strangers_get_an_error(site: Server, method: str, path: str, status: int) -> None:
    async with browsing(site) as client:
        client.cookies["csrftoken"] = client.headers["X-CSRFToken"] = "a" * 32
        ids = {
            "open": await begun(client, 1),
            "closed": await begun(client, 1, namespace="closed"),
            "nobodys": uuid.uuid4(),
        }
        assert (await client.request(method, path.format_map(ids))).status_code == status


async def test_streams_hold_neither_thread_nor_database_connection(site: Server) -> None:
    def threads() -> int:
        return len([*Path(f"/proc/{site.pid}/task").iterdir()])

    def connections() -> int:
        return sum(each.endswith("site.sqlite3") for each in open_files(site.pid))

    async with browsing(site) as client, AsyncExitStack() as open_ones:
        answer_id = await begun(client, 200, pause=STREAMS / 2500)
        await asyncio.to_thread(_wait_for_some, site, answer_id)
        address, before = f"/answers/{answer_id}/events", (threads(), connections())
        streams = [
            await open_ones.enter_async_context(client.stream("GET", address))
            for _ in range(STREAMS)
        ]
        # the sweeper has one of each for a moment
        await asyncio.to_thread(wait_until, lambda: threads() <= before[0] + 1)
        await asyncio.to_thread(wait_until, lambda: connections() <= before[1] + 1)
        last = site.api("history", channel=f"answer:{answer_id}", reverse=True, limit=1)
        assert "tags" not in last["result"]["publications"][0]  # it has not ended
        bodies = [await each.aread() for each in streams]
        assert {text_in(each.decode()) for each in bodies} == {text_of(200)}


FRAMES: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {
    1: ({"id": 1, "params": {}}, {"id": 2, "method": 1}),
    2: ({"id": 1, "connect": {}}, {"id": 2}),
}
"""Generation → the frame that connects, and that of the subscription without its request."""


@pytest.mark.parametrize("generation", FRAMES)
async def test_subscriber_recovers_the_text_in_few_publications(
    site: Server, generation: int
) -> None:
    async with browsing(site) as client:
        answer_id = await begun(client, 60, form="text")
        await client.get(f"/answers/{answer_id}/events")
    first, second = FRAMES[generation]
    request = {"channel": f"answer:{answer_id}", "recover": True, "offset": 0}
    second = second | {"params" if generation == 1 else "subscribe": request}
    async with connect(site.socket, proxy=None) as socket:
        await socket.send(json.dumps(first))
        await socket.recv()
        await socket.send(json.dumps(second))
        reply = json.loads(await socket.recv())
    result = reply["result"] if generation == 1 else reply["subscribe"]
    found = result["publications"]
    *publications, last = found if generation == 2 else reversed(found)
    assert "".join(each["data"] for each in publications) == text_of(60)
    assert (len(publications), last["data"]) == (1, {"end": "complete"})
