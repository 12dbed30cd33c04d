"""A churn of clients that counts what it does, for comparison with what a server has counted.

`python -m tests.live.monitoring.churn 20000` plays one of that size.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.conftest import connection_token
from tests.live.monitoring.scraping import OPTIONS, Values, scrape
from tests.protocol_client import ProtocolClient, open_client
from tests.server import Server, wait_until

AT_ONCE = 20

COUNTED = (
    "realtime_connections_opened_total",
    "realtime_disconnects_total",
    "realtime_command_errors_total",
    "realtime_published_total",
    "realtime_delivered_total",
    "realtime_recoveries_total",
)


async def churn(server: Server, number: int) -> Values:
    """Open and close so many connections in several ways.

    Returns:
        What the clients have done and seen, under the names of metrics.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(index: int) -> None:
        async with slots:
            await _visit(server, index, counts)

    await asyncio.gather(*map(one, range(number)))
    return dict(counts)


async def _visit(server: Server, index: int, counts: Counter[tuple[str, ...]]) -> None:
    user = f"churn-{index}"
    async with open_client(server.socket, token=connection_token(user)) as client:
        counts["realtime_connections_opened_total",] += 1
        await _publish(server, client, index, counts)
        if index % 3 == 0:
            await client.error("subscribe", {"channel": "unknown:room"})
            counts["realtime_command_errors_total", "102", "subscribe"] += 1
        if index % 4 == 0:
            await _recover(client, index, counts)
        match index % 5:
            case 0:
                await asyncio.to_thread(server.api, "disconnect", user=user)
                code, _ = await client.closed()
                assert code == 3012
            case 1:
                await client.send_raw("no command")
                code, _ = await client.closed()
                assert code == 3003
            case _:
                code = 0
        counts["realtime_disconnects_total", str(code)] += 1


async def _publish(
    server: Server, client: ProtocolClient, index: int, counts: Counter[tuple[str, ...]]
) -> None:
    channel = f"open:{index}"
    await client.result("subscribe", {"channel": channel})
    if index % 2:
        await client.send("publish", {"channel": channel, "data": index})
        counts["realtime_published_total", "client"] += 1
    else:
        await asyncio.to_thread(server.publish, channel, index)
        counts["realtime_published_total", "server"] += 1
    assert (await client.publication())["data"] == index
    counts["realtime_delivered_total", "open"] += 1


async def _recover(client: ProtocolClient, index: int, counts: Counter[tuple[str, ...]]) -> None:
    channel = f"kept:{index}"
    position = await client.result("subscribe", {"channel": channel})
    for epoch, result in ((position["epoch"], "recovered"), ("another", "not recovered")):
        await client.result("unsubscribe", {"channel": channel})
        await client.result("subscribe", {"channel": channel, "recover": True, "epoch": epoch})
        counts["realtime_recoveries_total", result] += 1


def counted(server: Server, before: Values) -> Values:
    """Return what a server has counted since `before`, when all clients have left."""

    def is_empty() -> bool:
        values = scrape(server)
        return not any(values[each] for each in values if each[0] == "realtime_connections")

    wait_until(is_empty, what="the end of all connections")
    return {
        each: value - before.get(each, 0)
        for each, value in scrape(server).items()
        if each[0] in COUNTED and value != before.get(each, 0)
    }


def main(number: int) -> None:
    """Play a churn, and compare."""
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Path(directory), OPTIONS)
        try:
            before = scrape(server)
            seen = asyncio.run(churn(server, number))
            found = counted(server, before)
        finally:
            server.stop()
    for name in sorted(seen | found):
        sys.stdout.write(f"{name}: clients {seen.get(name, 0):g}, server {found.get(name, 0):g}\n")
    sys.exit(seen != found)


if __name__ == "__main__":
    main(int(sys.argv[1]))
