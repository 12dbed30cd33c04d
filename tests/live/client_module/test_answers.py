"""The module of answers in a browser: `answer`, `answers` and `stop`."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from selenium.webdriver import Chrome

from tests.answers.helpers import text_of
from tests.live.client_module.page import OPTIONS, ClientPage
from tests.processes import run_python
from tests.scripted_server import Line
from tests.server import ROOT, Server, wait_until
from tests.tcp_proxy import TcpProxy

READ = """
    const { answer, answers } = await import("/static/realtime/answers.js");
    window.answer = answer;
    window.answers = answers;
    window.states = [];
    window.reading = (async () => {
      for await (const state of answer(client, args[0])) states.push(state);
      return states.at(-1);
    })();
    window.reading.catch(() => {});
"""
SOME = "while (states.length < 3) await new Promise((go) => setTimeout(go, 5))"


@pytest.fixture
def server(serve: Callable[..., Server], site: dict[str, str]) -> Server:
    """A site with answers."""
    environment = site | {"TEST_APPS": "realtime.answers"}
    migrate = ["-m", "django", "migrate", "realtime_answers", "-v0", "--skip-checks"]
    run_python(migrate, ROOT, os.environ | environment).check_returncode()
    # the visitor of a page without the client has no token, and reads all the same
    namespaces = [each | {"anonymous": True} for each in OPTIONS["namespaces"]]
    return serve(environment=environment, **OPTIONS | {"namespaces": namespaces})


def begun(server: Server, chat: str, count: int, **params: Any) -> str:
    """Begin an answer for user 17. Return its ID."""
    query = "&".join(f"{name}={value}" for name, value in {"user": 17, "id": 1, **params}.items())
    address = f"{server.address}/chat/{chat}?count={count}&{query}"
    with urllib.request.urlopen(urllib.request.Request(address, method="POST")) as response:
        answer_id: str = json.loads(response.read())["id"]
        return answer_id


@pytest.mark.parametrize("form", ["ui", "ag-ui", "text"])
async def test_text_is_whole_through_a_cut_and_for_a_second_reader(
    server: Server, proxy: TcpProxy, page: ClientPage, unique: str, form: str
) -> None:
    answer_id = begun(server, unique, 150, form=form)
    await page.connected(proxy.url, fallback=False)
    await page.run(READ + SOME, answer_id)
    async with page.away(proxy):
        pass
    second = """
        let last;
        for await (const state of answer(client, args[0])) last = state;
        return [await reading, last];
    """
    last, other = await page.run(second, answer_id)

    assert (last["status"], last["text"]) == ("complete", text_of(150))
    assert other == last
    texts = [state["text"] for state in await page.run("return states")]
    assert texts == sorted(texts, key=len)
    again = await page.run(READ + "return reading", answer_id)
    assert again == last


async def test_two_tabs_and_a_reload_have_the_same_text(
    server: Server, chromium: Chrome, page: ClientPage, unique: str
) -> None:
    answer_id = begun(server, unique, 150)
    await page.connected(server.socket)
    await page.run(READ + SOME, answer_id)
    await page.open(server.address)
    await page.connected(server.socket)
    last = await page.run(READ + "return reading", answer_id)
    assert (last["status"], last["text"]) == ("complete", text_of(150))
    assert [part["type"] for part in last["parts"]] == [
        *("start", "text-start", "text-delta", "text-end", "finish"),
    ]


async def test_stop_ends_the_answer_with_what_it_has(
    server: Server, page: ClientPage, unique: str
) -> None:
    answer_id = begun(server, unique, 10_000)
    await page.connected(server.socket)
    await page.run(READ + SOME, answer_id)
    assert await page.run("return answer(client, args[0]).stop()", answer_id) == "stopped"
    last = await page.run("return reading")
    assert last["status"] == "stopped"
    assert last["text"]
    assert text_of(10_000).startswith(last["text"])


async def test_answers_of_a_channel_begin_and_end(
    server: Server, page: ClientPage, unique: str
) -> None:
    first = begun(server, unique, 10_000)
    await page.connected(server.socket)
    await page.run(READ, first)
    script = """
        window.seen = [];
        (async () => {
          for await (const each of answers(client, `chat:${args[0]}`)) seen.push(each);
        })();
        while (seen.length < 1) await new Promise((go) => setTimeout(go, 5));
    """
    await page.run(script, unique)
    second = begun(server, unique, 3)
    seen = await page.run(
        "while (seen.length < 4) await new Promise((go) => setTimeout(go, 5)); return seen"
    )
    assert [(each["id"], each["status"]) for each in seen if each["id"] == first] == [
        (first, "queued"),
        (first, "stopped"),
    ]
    assert [(each["id"], each["status"]) for each in seen if each["id"] == second] == [
        (second, "queued"),
        (second, "complete"),
    ]


LISTEN = """
    const { answers } = await import("/static/realtime/answers.js");
    window.seen = [];
    (async () => {
      for await (const { id, status } of answers(client, args[0])) seen.push(`${id} ${status}`);
    })();
"""


async def seen(page: ClientPage, count: int) -> list[str]:
    """Wait until the loop of the page has this number of changes; return the changes."""
    got: list[str] = await page.run(
        "while (seen.length < args[0]) await new Promise((go) => setTimeout(go, 5)); return seen",
        count,
    )
    return got


def publication(answer_id: str, status: str, offset: int) -> dict[str, Any]:
    return {"data": {"answer": answer_id, "status": status}, "offset": offset}


async def test_history_is_read_once_subscribed_and_counts_before_what_came_until_then(
    server: Server, page: ClientPage
) -> None:
    """An answer that begins between both is not lost, and its states do not go back."""

    async def script(line: Line) -> None:
        await line.accept()
        command = await line.command("subscribe")
        await line.send({"id": command["id"], "result": {}})
        command = await line.command("history")
        pushes = [
            {"result": {"channel": "c", "data": publication(*each)}}
            for each in [("a", "queued", 1), ("a", "complete", 2), ("b", "queued", 3)]
        ]
        history = [publication("b", "queued", 3), publication("a", "complete", 2)]
        result = {"publications": history, "offset": 3, "epoch": "e"}
        await line.send(*pushes, {"id": command["id"], "result": result})
        late = publication("b", "complete", 4)
        await line.send({"result": {"channel": "c", "data": late}})
        await line.stay()

    await page.open(server.address)
    async with page.scripted(script):
        await page.run(LISTEN, "c")
        assert await seen(page, 2) == ["b queued", "b complete"]


async def test_history_is_read_again_where_the_connection_was_lost_meanwhile(
    server: Server, page: ClientPage
) -> None:
    async def script(line: Line) -> None:
        await line.accept()
        stream = {"recoverable": True, "offset": 1, "epoch": "e", "recovered": line.number > 1}
        await line.reply("subscribe", result=stream)
        if line.number < 3:
            await line.command("history")
            await line.close(3001, '{"reason":"shutdown","reconnect":true}')
        else:
            history = [publication("a", "queued", 1)]
            await line.reply("history", result={"publications": history, "offset": 1, "epoch": "e"})
            await line.stay()

    await page.open(server.address)
    async with page.scripted(script, minDelay=1, maxDelay=1):
        await page.run(LISTEN, "c")
        assert await seen(page, 1) == ["a queued"]


async def test_an_answer_made_twice_before_it_is_read_is_one(
    server: Server, page: ClientPage
) -> None:
    async def script(line: Line) -> None:
        await line.accept()
        row = {"text": "one", "parts": [], "status": "queued", "channel": "c"}
        await line.reply("rpc", result={"data": row | {"offset": 1, "epoch": "e"}})
        stream = {"recoverable": True, "offset": 1, "epoch": "e", "recovered": True}
        await line.reply("subscribe", result=stream)
        push = {"data": " two", "offset": 2, "tags": {"end": "complete"}}
        await line.send({"result": {"channel": "c", "data": push}})
        await line.stay()

    await page.open(server.address)
    async with page.scripted(script):
        texts = await page.run(
            """
            const { answer } = await import("/static/realtime/answers.js");
            const last = async (reading) => {
              let text;
              for await (const state of reading) text = state.text;
              return text;
            };
            const both = [answer(client, "a"), answer(client, "a")];
            return await Promise.all(both.map(last));
            """
        )
    assert texts == ["one two", "one two"]


async def test_answers_that_began_and_ended_without_a_connection_are_told(
    server: Server, proxy: TcpProxy, page: ClientPage, unique: str
) -> None:
    first = begun(server, unique, 10_000)
    await page.connected(proxy.url, fallback=False)
    await page.run(LISTEN, f"chat:{unique}")
    assert await seen(page, 1) == [f"{first} queued"]
    async with page.away(proxy):
        second = begun(server, unique, 10_000)
    news = [f"{first} queued", f"{first} stopped", f"{second} queued"]
    assert sorted(await seen(page, 3)) == sorted(news)


async def test_unknown_answer_and_one_of_another_are_errors(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.connected(server.socket)
    assert await page.error(READ + "return reading", unique) == 107
    answer_id = begun(server, unique, 3, user=18)
    stop = "return answer(client, args[0]).stop()"
    assert await page.error(stop, answer_id) == 103


async def test_publications_of_clients_are_no_answers(
    server: Server, page: ClientPage, unique: str
) -> None:
    await page.connected(server.socket)
    script = """
        const { answers } = await import("/static/realtime/answers.js");
        const name = `chat:${args[0]}`;
        await client.publish(name, { answer: "before", status: "queued" });
        window.seen = [];
        (async () => {
          for await (const each of answers(client, name)) seen.push(each.id);
        })();
        await client.channel(name).publish({ answer: "after", status: "queued" });
    """
    await page.run(script, unique)
    own = begun(server, unique, 3)
    seen = await page.run(
        "while (seen.length < 2) await new Promise((go) => setTimeout(go, 5)); return seen"
    )
    assert seen == [own, own]


async def test_htmx_shows_the_text_as_it_comes(
    server: Server, chromium: Chrome, unique: str
) -> None:
    answer_id = begun(server, unique, 40)
    address = f"/answers/{answer_id}/events?format=html"
    scripts = "".join(
        f'<script src="/live/library/{name}"></script>' for name in ("htmx", "htmx-sse")
    )
    reading = f'hx-sse:connect="{address}" hx-sse:close="end" hx-swap="beforeend"'
    body = f'{scripts}<pre id="text" {reading}></pre>'
    request = urllib.request.Request(
        f"{server.address}/live/write/{unique}", json.dumps(body).encode(), method="POST"
    )
    urllib.request.urlopen(request).close()
    page = f"{server.address}/live/page/{unique}"

    def text() -> str:
        return str(chromium.execute_script("return document.getElementById('text').textContent"))

    await asyncio.to_thread(chromium.get, page)
    await asyncio.to_thread(wait_until, lambda: text() == text_of(40))
    assert chromium.execute_script("return document.querySelectorAll('three').length") == 0
