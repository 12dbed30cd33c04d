"""Readers over HTTP who come back at a bad time, or who may not."""

from __future__ import annotations

import asyncio
import re
import uuid

import pytest

from tests.answers.helpers import begun, browsing
from tests.server import Server

TIMEOUT = 10


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


async def test_stranger_may_not_resume(site: Server) -> None:
    async with browsing(site) as client:
        name = uuid.uuid4().hex
        await client.post(f"/closed/{name}", params={"count": 100, "id": 1})
        assert (await client.get(f"/closed/{name}/stream")).status_code == 403
