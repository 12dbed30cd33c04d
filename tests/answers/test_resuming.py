"""Readers over HTTP who come back at a bad time, or who may not."""

from __future__ import annotations

import asyncio
import re
import uuid

import pytest

from realtime.answers import http
from realtime.answers.models import Answer, Status
from realtime.server_api.arguments import Position
from tests.answers.helpers import begun, browsing
from tests.server import Server

TIMEOUT = 30


@pytest.mark.parametrize("form", ["ui", "ag-ui", "text"])
@pytest.mark.parametrize("last", ["top", "old", "future"])
async def test_reader_who_comes_back_after_the_end_is_not_kept(
    site: Server, form: str, last: str
) -> None:
    async with browsing(site) as client:
        answer_id = await begun(client, 20, form=form)
        address = f"/answers/{answer_id}/events"
        body = (await client.get(address)).text
        offset, epoch = re.findall(r"^id: (\d+)\.(.+)$", body, re.M)[-1]
        async with asyncio.timeout(TIMEOUT):  # the row ends after the channel
            while re.search(r"^id: \d", (await client.get(address)).text, re.M):
                pass
        given = {
            "top": f"{int(offset) + 1}.{epoch}",
            "old": "1.gone",
            "future": "9999999999999999999.",
        }
        async with asyncio.timeout(TIMEOUT):
            response = await client.get(address, headers={"Last-Event-ID": given[last]})
        assert response.status_code in (200, 204)
        if response.status_code == 200:
            assert "id: end" in response.text


LOST = {
    "ui": 'data: {"type":"error","errorText":"A part of the answer was missed. Load it anew."}\n\n'
    "id: end\ndata: [DONE]\n\n",
    "ag-ui": 'id: end\ndata: {"type":"RUN_ERROR",'
    '"message":"A part of the answer was missed. Load it anew."}\n\n',
    "events": "id: end\nevent: end\ndata: lost\n\n",
    "text": "id: end\nevent: end\ndata: lost\n\n",
}


@pytest.mark.parametrize("form", LOST)
@pytest.mark.parametrize("when", ["running", "ended"])
async def test_reader_who_missed_a_part_for_good_is_told(
    site: Server, form: str, when: str
) -> None:
    async with browsing(site) as client, asyncio.timeout(TIMEOUT):
        answer_id = await begun(client, 20 if when == "ended" else 200, form=form)
        address = f"/answers/{answer_id}/events"
        if when == "ended":
            await client.get(address)
        gone = {"Last-Event-ID": "1.gone"}
        assert (await client.get(address, headers=gone)).text == f":\n\n{LOST[form]}"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
async def test_other_methods_begin_no_stream(site: Server, method: str) -> None:
    async with browsing(site) as client, asyncio.timeout(TIMEOUT):
        name = uuid.uuid4().hex
        await client.post(f"/chat/{name}", params={"count": 100, "id": 1})
        assert (await client.request(method, f"/chat/{name}/stream")).status_code == 405


async def test_stranger_may_not_resume(site: Server) -> None:
    async with browsing(site) as client:
        name = uuid.uuid4().hex
        await client.post(f"/closed/{name}", params={"count": 100, "id": 1})
        assert (await client.get(f"/closed/{name}/stream")).status_code == 403


async def test_reader_who_comes_back_when_the_chunks_have_left_is_told() -> None:
    row = Answer(form="text", status=Status.COMPLETE, text="text", position=-1)
    parts = [part async for part in http._stream(http.AnswerEvents(row, False), Position(7, "e"))]
    assert b"".join(parts).decode() == LOST["text"]
