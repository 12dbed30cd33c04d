"""The published Python client of the second generation, unmodified. See also `test_sdks`."""

from __future__ import annotations

import pytest
from centrifuge import ReplyError

from tests.live.python_client import python_client
from tests.server import Server


async def test_data_that_are_not_json_are_refused(server: Server, unique: str) -> None:
    async with python_client(server.socket, use_protobuf=True) as client:
        await client.connect()
        with pytest.raises(ReplyError) as refused:
            await client.publish(f"chat:{unique}", b"boom")
    assert refused.value.code == 107
