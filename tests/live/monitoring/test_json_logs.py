"""Records of a running service, as the JSON formatter of docs/deployment.md writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from realtime.logs import FIELDS
from tests.live.monitoring.churn import churn
from tests.live.monitoring.scraping import OPTIONS
from tests.server import ROOT, Server, wait_until


def documented() -> dict[str, Any]:
    """The LOGGING of the documentation."""
    page = (ROOT / "docs" / "deployment.md").read_text()
    found = re.search(r"```python\n# settings.py\n(LOGGING = .*?)```", page, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    logging: dict[str, Any] = names["LOGGING"]
    return logging


async def test_records_of_a_run_are_json_with_their_fields(
    own_server: Callable[..., Server],
) -> None:
    environment = {"TEST_LOGGING": json.dumps(documented())}
    server = own_server(environment=environment, name="node-1", **OPTIONS)

    await churn(server, 10)

    def ends() -> list[dict[str, Any]]:
        return [each for each in records(server) if each["message"].startswith("Disconnecting")]

    wait_until(lambda: len(ends()) == 4, what="the records of those that the service closed")
    assert records(server)
    for record in records(server):
        assert set(FIELDS) <= set(record)
        assert record["node"] == "node-1"
    for record in ends():
        assert re.fullmatch(r"[0-9a-f-]{36}", record["client"])
        assert record["user"] in {f"churn-{index}" for index in (0, 1, 5, 6)}
        assert record["code"] in (3003, 3012)
        assert record["duration"] > 0


def records(server: Server) -> list[dict[str, Any]]:
    """What the loggers of the service have written."""
    lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["logger"].startswith("realtime.")]
